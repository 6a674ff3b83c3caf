"""The reward that retain guesses where nobody gave one."""

import pytest

from retrieval.tables.kinds import RunOutcome
from writer.retain.heuristic import heuristic_reward


@pytest.mark.parametrize(("outcome", "whole"), [("success", 1.0), ("partial", 0.5), ("failure", 0.0)])
def test_the_outcome_is_worth_half_where_a_tool_was_left_on_an_error(outcome: RunOutcome, whole: float):
    assert heuristic_reward(outcome, unresolved=False) == whole
    assert heuristic_reward(outcome, unresolved=True) == whole / 2


@pytest.mark.parametrize("outcome", ["aborted", "unknown"])
def test_nothing_is_guessed_of_a_run_whose_end_nobody_saw(outcome: RunOutcome):
    assert heuristic_reward(outcome, unresolved=False) is None
    assert heuristic_reward(outcome, unresolved=True) is None
