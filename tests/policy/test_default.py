"""The default orders by rank and record, and an untrained head leaves that order exactly as it is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy import default, evidence, features, inputs
from policy.network import untrained
from tests.policy.builders import cases, nameless, pool, unhurried, wild


def candidate(**known: float) -> features.Features:
    table = np.zeros((1, len(features.NAMES)), np.float32)
    for name, value in ({"rrf": 0.03, "reward": np.nan} | known).items():
        table[0, features.COLUMN[name]] = value
    return table


def ordered(scores: np.ndarray) -> list[int]:
    return np.argsort(-scores, kind="stable").tolist()


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({}, 1 / 2),
        ({"reward": 1.0}, 2 / 3),
        ({"reward": 0.0}, 1 / 3),
        ({"reward": 0.5}, 1 / 2),
        ({"near_count": 3.0, "near_reward": 2.0, "usual_reward": np.nan}, 1 / 2 + 0.5 / 5),
        ({"near_count": 3.0, "near_reward": 2.0, "usual_reward": 0.2}, 1 / 2 + 1.4 / 5),
        ({"reward": 1.0, "near_count": 4.0, "near_reward": 0.0, "usual_reward": 0.25}, 2 / 3 - 1 / 6),
        ({"reward": 1.0, "near_count": 0.25, "near_reward": 0.25, "usual_reward": 0.0}, 2 / 3 + 0.25 / 2.25),
        ({"reward": 1.0, "near_count": 99.0, "near_reward": 99.0, "usual_reward": 0.0}, 0.98),
    ],
)
def test_the_posterior_counts_the_cases_own_reward_and_those_of_its_reuses(known: dict[str, float], expected: float):
    assert default.posterior_mean(candidate(**known))[0] == pytest.approx(expected)


@pytest.mark.parametrize("usual", [0.0, 0.3, 0.6])
def test_where_little_is_usual_a_case_that_earns_as_much_stands_where_one_stands_that_nobody_tried(usual: float):
    tried = candidate(reward=1.0, near_count=50.0, near_reward=50.0 * usual, usual_reward=usual)
    assert default.posterior_mean(tried) == pytest.approx(default.posterior_mean(candidate(reward=1.0)))


def test_where_much_is_usual_a_case_that_always_helps_gains_all_the_same():
    tried = candidate(reward=1.0, near_count=50.0, near_reward=50.0, usual_reward=1.0)
    assert default.posterior_mean(tried) > 0.9


def test_what_came_of_a_case_on_other_queries_moves_nothing():
    blamed = candidate(reward=1.0, reuse_count=50.0, usual_reward=0.9)
    assert default.posterior_mean(blamed) == default.posterior_mean(candidate(reward=1.0))


def test_a_missing_reward_is_not_a_failure():
    unknown, failed = default.posterior_mean(candidate()), default.posterior_mean(candidate(reward=0.0))
    assert unknown[0] > failed[0]


@unhurried
@given(st.floats(0, 1), st.floats(0, 100), st.floats(0, 1), st.floats(0, 1))
def test_the_posterior_mean_lies_between_zero_and_one(reward: float, count: float, share: float, usual: float):
    known = {"reward": reward, "near_count": count, "near_reward": count * share, "usual_reward": usual}
    mean = default.posterior_mean(candidate(**known))
    assert 0 < mean[0] < 1


def several(*known: dict[str, float]) -> features.Features:
    return np.concatenate([candidate(**each) for each in known])


GOOD = {"reward": 1.0, "proven": 1.0, "similarity": 0.6, "unknown": 0.5, "agreement": 0.3}


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"rrf": 0.03}, {"rrf": 0.02}),
        ({"agreement": 0.6}, {"agreement": 0.3}),
        ({"reward": 1.0}, {"reward": 0.0}),
        ({"near_count": 2.0, "near_reward": 2.0}, {"near_count": 2.0, "near_reward": 0.0}),
    ],
)
def test_of_two_cases_that_differ_in_one_thing_the_default_takes_the_better(
    better: dict[str, float], worse: dict[str, float]
):
    assert ordered(default.scores(several(GOOD | worse, GOOD | better))) == [1, 0]


@pytest.mark.parametrize("agreement", [0.0, 0.5, 1.0])
def test_where_plans_say_nothing_rrf_orders_what_went_as_well(agreement: float):
    ranked = [GOOD | {"rrf": 1 / (50 + place), "agreement": agreement, "unknown": 1.0} for place in (3, 1, 2)]
    assert ordered(default.scores(several(*ranked))) == [1, 2, 0]


RETURNED = GOOD | {"similarity": 0.98, "agreement": 0.3, "rrf": 0.03}
OFTEN_DONE = GOOD | {"similarity": 0.6, "agreement": 0.6, "rrf": 0.025}


def test_where_plans_tell_none_from_another_the_search_counts_as_much_as_the_record():
    """A near case of half a record stands before a far one that always helped, by the product of both."""
    near = candidate(rrf=0.04, reward=0.5, agreement=0.7, unknown=1.0)
    far = candidate(rrf=0.01, reward=1.0, agreement=0.7, unknown=1.0)
    told = candidate(rrf=0.001, reward=0.0, agreement=0.0, unknown=1.0)
    assert ordered(default.scores(np.concatenate([far, near]))) == [1, 0]
    assert ordered(default.scores(np.concatenate([far, near, told])))[:2] == [
        0,
        1,
    ]  # plans tell: the record counts more


@pytest.mark.parametrize(
    ("known", "first"),
    [({"unknown": 0.0}, 0), ({"unknown": 1.0}, 1), ({"unknown": 0.0, "proven": 0.0}, 1)],
    ids=["a task that came back", "nothing near is known", "only itself says that it went well"],
)
def test_a_task_that_comes_back_is_answered_by_its_own_proven_successes(known: dict[str, float], first: int):
    assert ordered(default.scores(several(RETURNED | known, OFTEN_DONE | known)))[0] == first


def test_runs_that_rightly_changed_nothing_speak_for_one_another():
    plans = np.array([[0.0, 0], [0, 0], [0, 0], [1, 1]])
    asked = cases(plans, similarity=[0.7, 0.7, 0.7, 0.75])
    said = evidence.features(asked, asked, nameless(2))
    own = np.zeros((len(plans), len(features.OWN)), np.float32)
    own[:, [features.COLUMN[name] for name in ("rrf", "reward", "proven")]] = (0.03, 1.0, 1.0)
    none = np.zeros((len(plans), len(features.NAMES) - own.shape[1] - said.shape[1]), np.float32)
    assert ordered(default.scores(features.matrix(own, said, none)))[-1] == 3


@unhurried
@given(wild())
def test_the_defaults_scores_are_finite_whatever_was_logged(seen: features.Features):
    assert np.isfinite(default.scores(seen)).all()


def test_cold_start_is_the_default_order_on_a_thousand_slates():
    rng = np.random.default_rng(2)
    head = untrained(len(inputs.CASE), len(inputs.QUERY), members=3)
    for _ in range(1_000):
        seen = pool(rng)
        cold = inputs.inputs_of(seen).prior + head.case_part(inputs.inputs_of(seen).case).mean(axis=0)
        assert ordered(cold) == ordered(default.scores(seen))
