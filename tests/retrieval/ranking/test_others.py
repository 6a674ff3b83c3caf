"""What is told beside a slate: one failure near the task, and one other way to do it."""

from collections.abc import Sequence

import numpy as np

from policy.slate import Slate
from retrieval.ranking.others import WARNING_DEPTH, others
from tests.policy.traits import traits as made

GROUPS = [0, 0, 2, 3, 4, 5, 6, 7, 8, 9]
PLANS = [[f"step {number}"] for number in range(10)]


def told(  # noqa: PLR0913 - each test names what it is about
    slate: Slate,
    *,
    failed: Sequence[int] = (),
    group: Sequence[int] = GROUPS,
    proven: Sequence[int] | None = None,
    ordered: Sequence[int] | None = None,
    plans: Sequence[Sequence[str]] = PLANS,
    similarity: Sequence[float] | None = None,
) -> list[int]:
    every = np.arange(len(plans))
    vouched = every if proven is None else proven
    traits = made(
        group=np.array(group, np.int16),
        failed=np.isin(every, failed),
        allowed=np.ones(len(plans), dtype=bool),
        proven=np.isin(every, vouched) & ~np.isin(every, failed),
        similarity=np.array([np.nan] * len(plans) if similarity is None else similarity, np.float32),
    )
    return others(traits, every.tolist() if ordered is None else ordered, slate, plans)


def test_the_alternative_is_the_best_run_of_a_plan_that_the_slate_does_not_tell():
    assert told((0, 2, 3)) == [4]
    assert told((0, 2, 3), ordered=[9, 8, 7, 6, 5, 4, 3, 2, 1, 0]) == [9]


def test_a_run_without_a_plan_is_no_alternative():
    assert told((0, 1, 2), plans=[*PLANS[:3], [], *PLANS[4:]]) == [4]


def test_beside_proven_cases_stand_only_proven_ones():
    assert told((0, 2, 3), proven=[0, 5]) == [5]
    assert told((0, 2, 3), proven=[]) == [4]


def test_the_first_failure_that_was_found_is_told_once_however_low_it_ranks():
    assert told((0, 2), failed=[4, 6], ordered=[0, 2, 3, 1, 5, 6, 4, 7, 8, 9])[0] == 4
    assert told((0, 2), failed=[4, 6]) == [4, 3]


def test_no_failure_is_told_where_the_slate_has_one_or_where_it_was_found_far_down():
    assert 6 not in told((0, 4), failed=[4, 6])
    assert WARNING_DEPTH not in told((0, 2), failed=[WARNING_DEPTH])
    assert told((0, 2), failed=[WARNING_DEPTH - 1])[0] == WARNING_DEPTH - 1


def test_what_a_failure_on_the_slate_did_may_be_told_as_what_worked():
    assert told((2, 4), failed=[4], plans=[*PLANS[:5], PLANS[4], *PLANS[6:]], ordered=[2, 4, 5, 3]) == [5]


def test_what_the_request_keeps_out_is_not_told():
    assert told((0, 2), ordered=[0, 2, 5], failed=[4]) == [5]


def test_an_empty_slate_stands_alone():
    assert told((), failed=[3]) == []


NEARNESS = [0.9, 0.8, 0.7, 0.6, 0.75, 0.65, 0.85, 0.1, 0.72, 0.2]


def test_only_runs_as_near_as_the_slate_add_something():
    assert told((0, 2, 3), similarity=NEARNESS) == [4]  # its middle is 0.7
    assert told((0, 2, 3), similarity=NEARNESS, ordered=[5, 7, 6, 4]) == [6]
    assert told((0, 2, 3), similarity=NEARNESS, failed=[5, 7]) == [5, 4]  # its last is 0.6
    assert told((0, 2, 3), similarity=NEARNESS, failed=[7]) == [4]
    assert told((0, 2), similarity=[float("nan"), *NEARNESS[1:]], failed=[7]) == [7, 3]


def test_a_plan_in_other_words_is_no_other_way():
    assert told((0, 2), group=[0, 0, 2, 0, 4, 5, 6, 7, 8, 9]) == [4]
