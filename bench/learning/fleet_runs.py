"""Benchmark 8, on real agent runs: a fleet's head learned from other users' outcomes alone, for users it never saw."""

import numpy as np

from bench.learning import fleet, runs, tau, tau_folds
from bench.learning.baselines import by
from bench.learning.learner import examples
from bench.learning.memory import Memory
from bench.learning.scores import DEFAULT, MANY, Scores, by_user
from bench.learning.worth import PLACES
from bench.measure import Measurement
from policy.decide import Policy
from policy.examples import Examples

FLEET = "fleet"


def on_runs(name: str, domain: tau.Domain) -> list[Measurement]:
    """Returns the gain of test users' first slates by a head trained on training users' logs of MANY decisions."""
    table = {mode: Scores() for mode in tau_folds.Mode}
    for fold in tau_folds.folds(domain, runs.SEEDS):
        policy = Policy(FLEET, fleet.fleet(contributions(domain, fold), fleet.PLANS[FLEET]), 1.0)
        arms = {DEFAULT: by(None), FLEET: by(policy)}
        for mode, user, ndcg in runs.tested(domain, fold, Memory(domain.effects), arms):
            table[mode].add(user, ndcg)
    return [_difference(f"{name} {mode.name.lower()}", scores) for mode, scores in table.items()]


def contributions(domain: tau.Domain, fold: tau_folds.Fold) -> list[Examples]:
    """Returns each training user's contribution, from MANY decisions together by the default as it explores."""
    service = runs.service(domain, fold, MANY)
    service.advance(MANY)
    user_of = {question.run: question.user for question in runs.training_questions(fold)}
    users = [user_of[each.scene.query] for each in service.log]
    together = examples(service.log, PLACES)
    return [together.take(np.array([user == each for each in users])) for user in sorted(set(users))]


def _difference(cell: str, scores: Scores) -> Measurement:
    values = scores.column(FLEET) - scores.column(DEFAULT)
    detail = (
        f"nDCG@4, paired by user; {len(values)} queries of {len(set(scores.users))} users; {MANY:,} logged by others"
    )
    return Measurement(
        f"fleet on runs, {cell}: fleet - default",
        float(values.mean()),
        "",
        detail,
        0.0,
        at_least=True,
        interval=by_user(values, scores.users),
    )
