import json
from dataclasses import replace

import numpy as np
import pytest

from app.bench.learning.canary import Scenario, canary
from policy.gate import Contest, Settings, Verdict, judge
from policy.logged import Logged, Target
from tests.policy.worlds import two_arms

FAST = Settings(resamples=400)


def failed(verdict: Verdict) -> set[str]:
    return {check.name for check in verdict.checks if not check.passed}


def empty():
    none = np.zeros(0)
    return Logged(none, none, none.astype(int), none.astype(int)), Contest(*[Target(none)] * 3)


def test_a_clear_winner_is_promoted_and_every_check_is_named():
    verdict = judge(*two_arms(), FAST)
    assert verdict.outcome == "promote"
    assert failed(verdict) == set()
    names = {check.name for check in verdict.checks}
    assert {"better than default", "better than serving", "calibration", "no segment worse"} <= names
    assert {"effective sample of candidate", "support of default", "missing rewards"} <= names


def test_a_harmful_candidate_is_kept_out_and_what_serves_goes_on():
    verdict = judge(*two_arms(uplift=-0.3), FAST)
    assert verdict.outcome == "keep"
    assert {"better than default", "better than serving"} <= failed(verdict)


def test_a_candidate_that_gives_the_defaults_slates_is_never_promoted():
    logged, contest = two_arms(uplift=0)
    contest = replace(contest, candidate=replace(contest.default, predicted=np.full(1000, 0.4)))
    assert judge(logged, contest, FAST).outcome != "promote"


def test_permuted_rewards_promote_no_more_often_than_the_level_says():
    promoted = sum(
        judge(drawn.logged, drawn.contest, FAST).outcome == "promote"
        for rng in np.random.default_rng(0).spawn(100)
        for drawn in [canary(Scenario(uplift=0.2, permuted=True), rng)]
    )
    assert promoted <= 4


def test_a_tiny_effective_sample_is_refused_and_nothing_is_estimated():
    logged, contest = two_arms(n=2000, share=0.01)
    verdict = judge(logged, contest, FAST)
    assert verdict.outcome == "insufficient evidence"
    assert "effective sample of candidate" in failed(verdict)
    assert not any("candidate" in name for name in verdict.estimates)
    assert (verdict.calibration, verdict.segments) == (None, ())


def test_weights_on_a_few_rows_are_refused_however_many_rows_there_are():
    logged, contest = two_arms(n=5000)
    propensity = logged.logged_propensity.copy()
    propensity[:5] = 1e-4
    verdict = judge(replace(logged, logged_propensity=propensity), contest, FAST)
    assert verdict.outcome == "insufficient evidence"
    assert verdict.estimates == {}


def test_a_policy_whose_slates_were_never_logged_is_refused_though_its_sample_is_large():
    logged, contest = two_arms(n=4000)
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
    assert (verdict.outcome, verdict.decisions) == ("insufficient evidence", 0)


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
    logged, contest = two_arms(n=4000)
    ours = contest.candidate.target_probability > contest.default.target_probability
    lost = (logged.segment == 1) & ours
    verdict = judge(replace(logged, reward=np.where(lost, 0.0, logged.reward)), contest, FAST)
    assert verdict.outcome == "keep"
    assert "no segment worse" in failed(verdict)
    assert verdict.segments[0].segment == 1


def test_a_serving_policy_that_is_worse_than_the_default_is_rolled_back():
    logged, contest = two_arms(uplift=-0.3)
    verdict = judge(logged, replace(contest, serving=contest.candidate), FAST)
    assert verdict.outcome == "roll back"
    assert verdict.estimates["serving - default"].dr.high < 0


def test_a_candidate_must_beat_what_serves_and_not_the_default_alone():
    logged, contest = two_arms()
    verdict = judge(logged, replace(contest, serving=contest.candidate), FAST)
    assert verdict.outcome == "keep"
    assert failed(verdict) == {"better than serving"}


@pytest.mark.parametrize("log", [two_arms(), two_arms(uplift=-0.3), two_arms(n=100), two_arms(share=0.01), empty()])
def test_a_verdict_survives_json_unchanged(log: tuple[Logged, Contest]):
    verdict = judge(*log, FAST)
    stored = json.dumps(verdict.as_json(), allow_nan=False)
    assert Verdict.from_json(json.loads(stored)) == verdict


def test_the_same_log_and_seed_give_the_same_verdict_to_the_last_digit():
    one, same = (json.dumps(judge(*two_arms(), FAST, seed=3).as_json()) for _ in range(2))
    assert one == same
