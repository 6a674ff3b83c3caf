"""How long an agent's threshold of confidence is kept."""

from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from policy.advice import RIGHT
from writer.advice.ask import Thresholds
from writer.advice.fixes import failures_in


def row(fix: list[int]) -> Any:
    terms = {"tool": 5, "error": [1, 2], "call": [3], "terms": [4], "fix": fix}
    return SimpleNamespace(case_id=uuid4(), place=1, **terms, told=0, helped=0, proven=False)


async def test_a_threshold_is_kept_while_fixes_are_told_and_computed_again_for_a_new_failure():
    thresholds, rows = Thresholds(), [row([place]) for place in range(30)]
    unsteady, steady = failures_in(rows), failures_in([row([7]) for _ in range(30)])
    first = await thresholds.of("alice", rows, unsteady, RIGHT)
    told: list[Any] = [SimpleNamespace(**{**vars(each), "told": 3, "helped": 1}) for each in rows]
    assert await thresholds.of("alice", told, steady, RIGHT) == first
    assert await thresholds.of("alice", [*rows, row([7])], steady, RIGHT) < first


async def test_other_failures_have_a_threshold_of_their_own_even_if_the_last_one_is_the_same():
    thresholds, last = Thresholds(), row([7])
    unsteady, steady = ([*(row([fix]) for fix in fixes), last] for fixes in (range(29), [7] * 29))
    first = await thresholds.of("alice", unsteady, failures_in(unsteady), RIGHT)
    assert await thresholds.of("alice", steady, failures_in(steady), RIGHT) < first
