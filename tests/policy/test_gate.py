import json
from dataclasses import replace

import numpy as np
import pytest

from bench.gate.canary import Scenario, canary
from policy.gate import Contest, judge
from policy.logged import Logged, Target
from policy.spending import Spending
from policy.verdict import ENDED, GateSettings, Outlook, Verdict, trial_of
from tests.policy.worlds import two_arms

FAST = GateSettings(resamples=400)


def failed(verdict: Verdict) -> set[str]:
    return {check.name for check in verdict.checks if not check.passed}


def empty():
    none = np.zeros(0)
    log = Logged(none, none, none.astype(int), none.astype(int), np.zeros((0, 0)))
    return log, Contest(*[Target(none)] * 3)


def test_a_clear_winner_is_promoted_and_every_check_is_named():
    verdict = judge(*two_arms(), FAST)
    assert verdict.outcome == "promote"
    assert failed(verdict) == set()
    names = {check.name for check in verdict.checks}
    assert {"better than default", "better than serving", "calibration", "no segment worse"} <= names
    assert {"effective sample of candidate", "support of default", "missing rewards"} <= names


def test_a_harmful_candidate_is_kept_out_and_what_serves_goes_on():
    verdict = judge(*two_arms(uplift=-0.3), FAST)
    assert verdict.outcome == "futile"
    assert {"better than default", "better than serving"} <= failed(verdict)


def test_a_candidate_that_gives_the_defaults_slates_is_never_promoted():
    logged, contest = two_arms(uplift=0)
    contest = replace(contest, candidate=replace(contest.default, predicted=np.full(1000, 0.4)))
    assert judge(logged, contest, FAST).outcome != "promote"


def test_a_promotion_names_the_look_that_it_passed_and_every_look_is_told():
    verdict = judge(*two_arms(), FAST)
    looks = verdict.courses["candidate - default"].looks
    assert [look.decisions for look in looks] == sorted({look.decisions for look in looks})
    assert looks[-1].decisions == verdict.decisions
    assert verdict.outlook == Outlook(0, 1.0)
    passing = verdict.courses["candidate - default"].passing
    assert any(f"after {passing.decisions} decisions" in reason for reason in verdict.reasons)


def test_a_trial_that_cannot_be_won_is_futile_and_says_so():
    verdict = judge(*two_arms(n=1500, uplift=-0.05), FAST)
    assert verdict.outcome == "futile"
    assert any("futile: the chance to pass by 4000" in reason for reason in verdict.reasons)


def test_a_trial_that_may_still_be_won_goes_on_and_says_how_long():
    verdicts = (judge(*two_arms(n=500, uplift=0.1, share=0.5, seed=seed), FAST) for seed in range(20))
    verdict = next(each for each in verdicts if each.outcome == "insufficient evidence" and each.outlook.more)
    assert any(f"{verdict.outlook.more} more if it stays so" in reason for reason in verdict.reasons)
    assert 0 < verdict.outlook.chance < 1


def test_without_enough_of_its_slates_the_verdict_says_how_many_decisions_that_takes():
    verdict = judge(*two_arms(n=400), FAST)
    assert verdict.outcome == "insufficient evidence"
    sample = next(check for check in verdict.checks if check.name == "effective sample of candidate")
    assert verdict.outlook.more == pytest.approx(400 * (sample.limit / sample.value - 1), abs=1)


def test_at_its_end_a_trial_that_was_not_won_is_over():
    short = replace(FAST, spending=Spending(soon=500, longest=1_000), futility=0.0)
    verdict = judge(*two_arms(n=1_000, uplift=0.0), short)
    assert (verdict.outcome, verdict.outlook.sentence()) == ("keep", "not to be won")


def test_at_its_end_a_trial_without_enough_evidence_is_over_and_asks_for_no_more():
    short = replace(FAST, spending=Spending(soon=200, longest=400))
    assert judge(*two_arms(n=399), short).outlook.more > 0
    verdict = judge(*two_arms(n=400), short)
    assert (verdict.outcome, verdict.outlook) == ("keep", ENDED)


def test_a_winner_that_passed_but_seems_worse_by_now_is_not_promoted():
    good, contest = two_arms(n=1_000, uplift=0.3)
    bad, _ = two_arms(n=1_000, uplift=-0.6, seed=1)
    log = replace(
        good,
        reward=np.concatenate((good.reward, bad.reward)),
        logged_propensity=np.tile(good.logged_propensity, 2),
        group=np.arange(2_000) // 2,
        segment=np.zeros(2_000, int),
        covariates=np.zeros((2_000, 0)),
    )
    arm = contest.candidate.target_probability
    other = two_arms(n=1_000, uplift=-0.6, seed=1)[1]
    predicted = np.concatenate((contest.candidate.predicted, np.maximum(other.candidate.predicted, 0)))
    candidate = Target(np.concatenate((arm, other.candidate.target_probability)), predicted)
    default = Target(np.concatenate((contest.default.target_probability, other.default.target_probability)))
    log = replace(
        log,
        logged_propensity=np.where(
            (candidate.target_probability > 0) & (default.target_probability > 0),
            1.0,
            np.where(candidate.target_probability > 0, 0.25, 0.75),
        ),
    )
    verdict = judge(log, Contest(candidate, default, default), FAST)
    assert verdict.courses["candidate - default"].passing is not None
    assert "better than default" in failed(verdict)
    assert verdict.outcome == "insufficient evidence"
    assert verdict.outlook.sentence() == "nobody can say yet"


def test_permuted_rewards_promote_no_more_often_than_the_level_says():
    promoted = sum(
        judge(drawn.logged, drawn.contest, FAST).outcome == "promote"
        for rng in np.random.default_rng(0).spawn(60)
        for drawn in [canary(Scenario(uplift=0.2, permuted=True), rng)]
    )
    assert promoted <= 3


def test_a_tiny_effective_sample_is_refused_and_nothing_is_estimated():
    logged, contest = two_arms(n=2000, share=0.01)
    verdict = judge(logged, contest, FAST)
    assert verdict.outcome == "insufficient evidence"
    assert "effective sample of candidate" in failed(verdict)
    assert not any("candidate" in name for name in verdict.estimates)
    assert (verdict.calibration, verdict.segments) == (None, ())


def test_weights_on_a_few_rows_are_refused_however_many_rows_there_are():
    logged, contest = two_arms(n=3_999)
    propensity = logged.logged_propensity.copy()
    propensity[:5] = 1e-4
    verdict = judge(replace(logged, logged_propensity=propensity), contest, FAST)
    assert verdict.outcome == "insufficient evidence"
    assert verdict.estimates == {}


def test_a_policy_whose_slates_were_never_logged_is_refused_though_its_sample_is_large():
    logged, contest = two_arms(n=3_999)
    agree = contest.candidate.target_probability == contest.default.target_probability
    only = replace(contest, candidate=replace(contest.candidate, target_probability=agree.astype(float)))
    verdict = judge(logged, only, FAST)
    assert verdict.outcome == "insufficient evidence"
    assert failed(verdict) == {"support of candidate"}


def test_many_decisions_on_few_queries_are_refused():
    logged, contest = two_arms()
    verdict = judge(replace(logged, group=np.arange(1000) % 10), contest, FAST)
    assert verdict.outcome == "insufficient evidence"
    assert "effective groups of candidate" in failed(verdict)


def test_too_few_decisions_are_refused():
    verdict = judge(*two_arms(n=100), FAST)
    assert verdict.outcome == "insufficient evidence"
    assert (verdict.decisions, verdict.estimates) == (100, {})


def test_an_empty_log_is_a_verdict_and_not_an_error():
    verdict = judge(*empty(), FAST)
    assert (verdict.outcome, verdict.decisions, verdict.outlook) == ("insufficient evidence", 0, Outlook())


def test_a_log_without_any_reward_is_a_verdict_and_not_an_error():
    logged, contest = two_arms()
    verdict = judge(replace(logged, reward=np.full(1000, np.nan)), contest, FAST)
    assert verdict.outcome == "insufficient evidence"
    assert verdict.missing.missing == 1000


def test_rewards_that_are_all_equal_say_nothing():
    logged, contest = two_arms()
    verdict = judge(replace(logged, reward=np.ones(1000)), contest, FAST)
    assert verdict.outcome == "insufficient evidence"
    assert failed(verdict) == {"rewards differ"}


def test_rewards_missing_by_arm_are_refused():
    logged, contest = two_arms(n=3000)
    ours = contest.candidate.target_probability > contest.default.target_probability
    silent = ours & (logged.reward == 0)
    verdict = judge(replace(logged, reward=np.where(silent, np.nan, logged.reward)), contest, FAST)
    assert verdict.outcome == "insufficient evidence"
    assert failed(verdict) == {"missing rewards"}


def test_a_trial_that_broken_promises_end_needs_no_further_decisions():
    verdicts = (judge(*two_arms(n=500, uplift=0.1, share=0.5, seed=seed), FAST) for seed in range(20))
    seed = next(seed for seed, each in enumerate(verdicts) if each.outlook.more)
    log, contest = two_arms(n=500, uplift=0.1, share=0.5, seed=seed)
    boastful = replace(contest.candidate, predicted=np.full(500, 0.99))
    verdict = judge(log, replace(contest, candidate=boastful), FAST)
    assert (verdict.outcome, verdict.outlook) == ("keep", ENDED)


def test_broken_promises_keep_a_winner_out():
    logged, contest = two_arms()
    loud = replace(contest.candidate, predicted=np.full(1000, 0.99))
    verdict = judge(logged, replace(contest, candidate=loud), FAST)
    assert verdict.outcome == "keep"
    assert failed(verdict) == {"calibration"}


def test_a_candidate_that_promised_nothing_is_kept_out():
    logged, contest = two_arms()
    silent = replace(contest.candidate, predicted=None)
    verdict = judge(logged, replace(contest, candidate=silent), FAST)
    assert verdict.outcome == "keep"
    assert next(check for check in verdict.checks if check.name == "calibration").value is None


def test_a_segment_that_loses_keeps_a_winner_out():
    logged, contest = two_arms(n=3000, uplift=0.6)
    ours = contest.candidate.target_probability > contest.default.target_probability
    lost = (logged.segment == 1) & ours
    verdict = judge(replace(logged, reward=np.where(lost, 0.0, logged.reward)), contest, FAST)
    assert verdict.outcome == "keep"
    assert "no segment worse" in failed(verdict)
    assert verdict.segments[0].segment == 1


def test_segments_are_not_tested_night_after_night_before_the_candidate_is_better():
    logged, contest = two_arms(n=900, uplift=0.0)
    ours = contest.candidate.target_probability > contest.default.target_probability
    lost = replace(logged, reward=np.where((logged.segment == 1) & ours, 0.0, logged.reward))
    verdict = judge(lost, contest, FAST)
    assert not {"better than default"} - failed(verdict)
    assert "no segment worse" not in failed(verdict)
    assert not any(part.tested for part in verdict.segments)


@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_a_trial_that_more_decisions_alone_do_not_win_is_not_called_won(reward: float):
    logged, contest = two_arms()
    verdict = judge(replace(logged, reward=np.full(1000, reward)), contest, FAST)
    assert verdict.outcome == "insufficient evidence"
    assert verdict.outlook.sentence() == "nobody can say yet"


def test_a_serving_policy_that_is_worse_than_the_default_is_rolled_back():
    logged, contest = two_arms(uplift=-0.3)
    verdict = judge(logged, replace(contest, serving=contest.candidate), FAST)
    assert verdict.outcome == "roll back"
    assert verdict.estimates["serving - default"].high < 0


def test_a_candidate_must_beat_what_serves_and_not_the_default_alone():
    logged, contest = two_arms()
    verdict = judge(logged, replace(contest, serving=contest.candidate), FAST)
    assert verdict.outcome == "futile"
    assert failed(verdict) == {"better than serving"}


@pytest.mark.parametrize("log", [two_arms(), two_arms(uplift=-0.3), two_arms(n=100), two_arms(share=0.01), empty()])
def test_a_verdict_survives_json_unchanged(log: tuple[Logged, Contest]):
    verdict = judge(*log, FAST)
    stored = json.dumps(verdict.as_json(), allow_nan=False)
    assert Verdict.from_json(json.loads(stored)) == verdict


def test_an_earlier_verdict_with_further_numbers_is_read_without_them():
    verdict = judge(*two_arms(), FAST)
    stored = json.loads(json.dumps(verdict.as_json()))
    stored["calibration"] |= {"brier": 0.2}
    stored["segments"] = [each | {"shrunk": 0.1} for each in stored["segments"]]
    assert Verdict.from_json(stored) == verdict


@pytest.mark.parametrize("other", [{"estimates": {"candidate": {"dr": 0.5}}}, {"outlook": None}])
def test_a_verdict_that_another_version_stored_in_another_form_is_none(other: dict[str, object]):
    stored = judge(*two_arms(), FAST).as_json()
    assert trial_of(stored).outcome == "promote"
    assert trial_of(stored | other) is None
    assert trial_of(None) is None


def test_the_same_log_and_seed_give_the_same_verdict_to_the_last_digit():
    one, same = (json.dumps(judge(*two_arms(), FAST, seed=3).as_json()) for _ in range(2))
    assert one == same
