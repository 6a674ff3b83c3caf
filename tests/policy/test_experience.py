"""What came of similar decisions: rewards speak for a plan, failures against it, and the near ones louder."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy.evidence import Cases
from policy.experience import NAMES, ReuseHistory, features, no_history
from tests.policy.builders import any_cases, cases, plans, unhurried

PLANS = np.array([[1.0, 0], [0, 1]])
ODDS = ("past_odds", "past_odds_wide", "past_odds_case")


def uses(*places: int, similarity: object = 0.6, reward: object = 1.0, credit: object = 1.0) -> ReuseHistory:
    """Uses of the candidates in these places."""
    n = len(places)
    column = [np.array(np.broadcast_to(np.asarray(value, float), n)) for value in (similarity, reward, credit)]
    return ReuseHistory(*column, PLANS[list(places)], np.array(places, dtype=np.int64))


def told(past: ReuseHistory, name: str, candidates: Cases | None = None) -> list[float]:
    column: list[float] = features(candidates or cases(PLANS), past)[:, NAMES.index(name)].tolist()
    return column


@st.composite
def pasts(draw: st.DrawFn, tools: int, candidates: int) -> ReuseHistory:
    effects = draw(plans(tools))
    n = len(effects)

    def column(low: float, high: float) -> np.ndarray:
        return np.array(draw(st.lists(st.floats(low, high), min_size=n, max_size=n)), dtype=np.float64)

    places = draw(st.lists(st.integers(-1, max(candidates - 1, -1)), min_size=n, max_size=n))
    return ReuseHistory(column(-1, 1), column(0, 1), column(0, 1), effects, np.array(places, dtype=np.int64))


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Cases, ReuseHistory]:
    tools = draw(st.integers(0, 3))
    candidates = draw(any_cases(tools))
    return candidates, draw(pasts(tools, len(candidates.steps)))


@unhurried
@given(worlds())
def test_experience_is_finite_and_votes_lie_between_minus_one_and_one(world: tuple[Cases, ReuseHistory]):
    candidates, past = world
    seen = features(candidates, past)
    assert seen.shape == (len(candidates.steps), len(NAMES))
    assert seen.dtype == np.float32
    assert np.isfinite(seen).all()
    votes = seen[:, [NAMES.index("past_vote"), NAMES.index("past_vote_wide")]]
    assert (np.abs(votes) <= 1).all()
    assert (seen[:, NAMES.index("past_mass")] >= 0).all()


@unhurried
@given(any_cases(2))
def test_without_a_past_only_the_candidates_vote(candidates: Cases):
    seen = features(candidates, no_history(2))
    for name in (*ODDS, "past_mass"):
        assert not seen[:, NAMES.index(name)].any()


def test_without_a_past_the_vote_of_a_candidate_is_that_of_its_plans_mates():
    candidates = cases(np.array([[1.0, 0], [1, 0], [1, 0], [0, 1]]))
    seen = told(no_history(2), "past_vote", candidates)
    assert seen == pytest.approx([2 / 3.05, 2 / 3.05, 2 / 3.05, 0])


@unhurried
@given(worlds())
def test_credit_zero_counts_nothing(world: tuple[Cases, ReuseHistory]):
    candidates, past = world
    unused = replace(past, credit=np.zeros(len(past.credit)))
    none = no_history(candidates.effects.shape[1])
    assert np.array_equal(features(candidates, unused), features(candidates, none))


@pytest.mark.parametrize("name", [*ODDS, "past_vote", "past_vote_wide"])
def test_a_rewarded_use_speaks_for_its_plan_and_a_failed_one_against_it(name: str):
    none, won, lost = (told(past, name) for past in (no_history(2), uses(0), uses(0, reward=0.0)))
    assert won[0] > none[0] > lost[0]
    assert won[1] == none[1] == lost[1] == 0


def test_a_plan_that_is_partly_the_same_is_moved_in_part():
    candidates = cases(np.array([[1.0, 0], [1, 1]]))
    whole, part = told(uses(0), "past_odds", candidates)
    assert whole > part > 0


@pytest.mark.parametrize("name", [*ODDS, "past_vote", "past_vote_wide", "past_mass"])
@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_the_farther_the_past_the_less_it_says(name: str, reward: float):
    said = [abs(told(uses(0, similarity=near, reward=reward), name)[0]) for near in (0.6, 0.5, 0.3, 0.0, -0.9)]
    assert said[0] > said[1] > said[2] > said[3] == said[4] == 0


def test_a_case_has_its_record_on_queries_like_this_one_alone():
    past = uses(0, 0, 1, similarity=[0.6, 0.6, 0.0], reward=[1.0, 0.0, 0.0], credit=[1.0, 0.5, 1.0])
    assert told(past, "near_count") == pytest.approx([1.5, 0])
    assert told(past, "near_reward") == pytest.approx([1, 0])
    farther = uses(0, similarity=0.3)
    assert 0 < told(farther, "near_count")[0] == told(farther, "near_reward")[0] < 0.01


def test_a_wider_kernel_listens_farther():
    past = uses(0, similarity=0.4)
    assert told(past, "past_odds_wide")[0] > told(past, "past_odds")[0] > 0


def test_more_of_the_same_makes_surer():
    assert told(uses(0, 0, 0), "past_odds")[0] > told(uses(0), "past_odds")[0]
    assert told(uses(0, 0, reward=[1, 0]), "past_odds")[0] == 0
    assert told(uses(0, 0, reward=[1, 0]), "past_mass")[0] == pytest.approx(np.log(3))


def test_a_share_of_the_outcome_says_as_much_as_its_share():
    quarters = uses(0, 0, 0, 0, credit=0.25)
    assert told(quarters, "past_odds") == pytest.approx(told(uses(0), "past_odds"))


def test_the_record_of_a_case_is_not_that_of_its_plan():
    twins = cases(np.array([[1.0, 0], [1, 0]]))
    assert told(uses(0), "past_odds_case", twins)[0] > told(uses(0), "past_odds_case", twins)[1] == 0
    assert told(uses(0), "past_odds", twins)[1] > 0


def test_a_case_that_is_no_candidate_any_more_still_speaks_for_its_plan():
    gone = replace(uses(0), candidate=np.array([-1]))
    assert told(gone, "past_odds") == told(uses(0), "past_odds")
    assert told(gone, "past_odds_case") == [0, 0]


@unhurried
@given(worlds(), st.randoms(use_true_random=False))
def test_the_order_of_the_past_does_not_matter(world: tuple[Cases, ReuseHistory], random: "object"):
    candidates, past = world
    shuffle = np.random.default_rng(random.getrandbits(32)).permutation(len(past.reward))
    shuffled = ReuseHistory(*(getattr(past, name)[shuffle] for name in ReuseHistory.__slots__))
    assert features(candidates, shuffled) == pytest.approx(features(candidates, past), abs=1e-5)
