"""What similar runs say: agreement is a fair measure of plans, and only successes vouch for one."""

from collections import Counter
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from policy import evidence
from policy.evidence import MOST_REPEATS, Cases, Tools, agreement, features
from tests.policy.builders import any_cases, cases, nameless, plans, unhurried

COLUMNS = [field.name for field in fields(Cases)]

BOUNDED = (
    "agreement",
    "agreement_kernel",
    "agreement_near",
    "agreement_broad",
    "agreement_keyword",
    "commonness",
    "plan_similarity",
    "tool_similarity",
    "plan_words",
    "query_words",
    "unknown",
    "plan_similarity_unknown",
    "agreement_near_unknown",
    "peer_success",
)
BY_SUCCESSES = (*BOUNDED[:6], "unknown", "agreement_near_unknown")


def counted_one_by_one(left: np.ndarray, right: np.ndarray) -> float:
    """F1 of two plans, tool by tool."""
    one = Counter({tool: min(int(count), MOST_REPEATS) for tool, count in enumerate(left)})
    other = Counter({tool: min(int(count), MOST_REPEATS) for tool, count in enumerate(right)})
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 1.0


@unhurried
@given(plans(4), plans(4))
def test_agreement_is_the_f1_of_two_multisets_of_tools(left: np.ndarray, right: np.ndarray):
    slow = [counted_one_by_one(one, other) for one in left for other in right]
    fast = agreement(left, right)
    assert fast.shape == (len(left), len(right))
    assert fast.ravel() == pytest.approx(slow)


@unhurried
@given(plans(3, largest=20), plans(3, largest=20))
def test_agreement_is_symmetric_and_lies_between_zero_and_one(left: np.ndarray, right: np.ndarray):
    both = agreement(left, right)
    assert np.array_equal(both, agreement(right, left).T)
    assert ((both >= 0) & (both <= 1)).all()


@unhurried
@given(plans(3, largest=20))
def test_a_plan_agrees_wholly_with_itself_though_it_changes_nothing(effects: np.ndarray):
    assert np.array_equal(np.diag(agreement(effects, effects)), np.ones(len(effects)))


@unhurried
@given(plans(2), plans(3))
def test_plans_without_a_common_tool_do_not_agree(left: np.ndarray, right: np.ndarray):
    wide_left = np.pad(left, ((0, 0), (0, 3)))
    wide_right = np.pad(right, ((0, 0), (2, 0)))
    idle = ~left.any(axis=1)[:, None] & ~right.any(axis=1)[None, :]  # two that change nothing do agree
    assert np.array_equal(agreement(wide_left, wide_right), idle.astype(float))


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Cases, Cases, Tools]:
    count, size = draw(st.integers(0, 3)), draw(st.integers(0, 2))
    candidates = draw(any_cases(count))
    peers = candidates if draw(st.booleans()) else draw(any_cases(count))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    vectors, query = rng.normal(size=(count, size)), rng.normal(size=size)
    unit = [part / np.maximum(np.linalg.norm(part, axis=-1, keepdims=True), 1e-9) for part in (vectors, query)]
    return candidates, peers, Tools(*unit, draw(st.sampled_from([0.0, 1.0])) * rng.random(count))


@unhurried
@given(worlds())
def test_the_evidence_is_finite_and_within_its_bounds_whatever_is_unknown(world: tuple[Cases, Cases, Tools]):
    candidates, peers, tools = world
    seen = features(candidates, peers, tools)
    assert seen.shape == (len(candidates.steps), len(evidence.NAMES))
    assert seen.dtype == np.float32
    assert np.isfinite(seen).all()
    within = seen[:, [evidence.NAMES.index(name) for name in BOUNDED]]
    assert ((within >= 0) & (within <= 1 + 1e-6)).all()
    gap = seen[:, evidence.NAMES.index("similarity_gap")]
    assert ((gap >= 0) & (gap <= 2)).all()


def column(name: str, candidates: Cases, peers: Cases, tools: Tools | None = None) -> np.ndarray:
    known = tools or nameless(candidates.effects.shape[1])
    return features(candidates, peers, known)[:, evidence.NAMES.index(name)]


TWO_PLANS = np.array([[1.0, 0], [0, 1]])


@pytest.mark.parametrize("crowd", [0, 10, 200])
def test_an_identical_earlier_success_outweighs_every_other_peer(crowd: int):
    peers = cases(
        np.vstack([TWO_PLANS[:1], np.repeat(TWO_PLANS[1:], crowd, axis=0)]), similarity=[1.0] + [0.85] * crowd
    )
    agreed = column("agreement", cases(TWO_PLANS), peers)
    assert agreed[0] > 0.9
    assert agreed[1] < 0.1


def test_without_a_near_success_the_broad_vote_decides():
    peers = cases(TWO_PLANS[[0, 1, 1, 1]], similarity=[0.62, 0.6, 0.6, 0.6])
    one, other = column("agreement_kernel", cases(TWO_PLANS), peers)
    assert other > 2 * one > 0


@unhurried
@given(any_cases(2), any_cases(2), plans(2, most=3))
def test_failures_and_unknown_outcomes_are_no_evidence_for_a_plan(candidates: Cases, peers: Cases, failed: np.ndarray):
    assume(np.isfinite(peers.similarity).any())  # else all are equally near, and one near failure would end that
    more = cases(failed, similarity=1.0, keyword_rank=1.0, reward=[[0.0, np.nan][i % 2] for i in range(len(failed))])
    joined = Cases(*(np.concatenate([getattr(part, name) for part in (peers, more)]) for name in COLUMNS))
    for name in BY_SUCCESSES:
        alone = column(name, candidates, peers)
        assert column(name, candidates, joined) == pytest.approx(alone, abs=1e-6), name


def test_a_failure_that_is_nearer_than_every_success_does_not_silence_them():
    peers = cases(TWO_PLANS, similarity=[0.25, 1.0], reward=[1, 0])
    assert column("agreement_near", cases(TWO_PLANS), peers).tolist() == [1, 0]


def test_the_success_of_peers_counts_their_failures_against_the_plan():
    peers = cases(TWO_PLANS[[0, 0, 1, 1]], reward=[1, 1, 0, 0])
    good, bad = column("peer_success", cases(TWO_PLANS), peers)
    assert good > 0.5 > bad


def test_a_candidate_does_not_vouch_for_itself():
    itself = cases(np.eye(3), reward=[1, 1, 0])
    succeeded = column("peer_success", itself, itself)
    assert succeeded == pytest.approx(np.full(3, 2 / 3))
    assert column("peer_success", itself, replace(itself))[0] > 2 / 3


def test_an_earlier_place_among_the_keywords_counts_for_more():
    peers = cases(TWO_PLANS, keyword_rank=[7, 30])
    first, second = column("agreement_keyword", cases(TWO_PLANS), peers)
    assert first > second > 0
    assert column("agreement_keyword", cases(TWO_PLANS), cases(TWO_PLANS)).tolist() == [0, 0]


def test_where_nothing_is_near_the_names_of_the_tools_decide():
    tools = Tools(np.eye(2), np.array([0.0, 1.0]), np.array([0.0, 0.5]))
    far = cases(TWO_PLANS[:1], similarity=0.05)
    one, other = column("agreement", cases(TWO_PLANS), far, tools)
    assert (one < 0.1, other > 0.9) == (True, True)
    assert column("unknown", cases(TWO_PLANS), far, tools)[0] > 0.99
    near = cases(TWO_PLANS[:1], similarity=0.99)
    one, other = column("agreement", cases(TWO_PLANS), near, tools)
    assert (one > 0.9, other < 0.1) == (True, True)


def test_a_run_that_changed_nothing_is_told_from_one_that_did():
    runs = cases(np.array([[0.0, 0], [2, 1]]))
    assert column("no_effect", runs, runs).tolist() == [1, 0]
    assert column("effects", runs, runs) == pytest.approx(np.log1p([0, 3]))
    assert column("distinct_effects", runs, runs) == pytest.approx(np.log1p([0, 2]))


@unhurried
@given(any_cases(3), st.permutations(range(6)))
def test_the_order_of_the_peers_does_not_matter_but_for_ties(peers: Cases, order: list[int]):
    ranked = replace(peers, keyword_rank=np.arange(1.0, len(peers.steps) + 1))
    shuffle = [place for place in order if place < len(peers.steps)]
    shuffled = Cases(*(getattr(ranked, name)[shuffle] for name in COLUMNS))
    candidates, tools = cases(np.eye(3)), nameless(3)
    assert features(candidates, shuffled, tools) == pytest.approx(features(candidates, ranked, tools), abs=1e-6)
