"""The baselines are given what was served."""

from bench.learning import baselines, runs, tau, tau_folds


def test_what_the_learners_are_told_is_what_was_served(airline: tau.Domain, fold: tau_folds.Fold):
    service = runs.service(airline, fold, 40)
    service.advance(40)
    told = baselines.Labelled.of_log(service.log)
    kept = [decision for decision in service.log if decision.slate]
    for decision, cases, places in zip(kept, told.cases, told.places, strict=True):
        assert cases[list(places)].tolist() == decision.scene.case[list(decision.slate)].tolist()
    assert told.reward.tolist() == [decision.reward for decision in kept]
