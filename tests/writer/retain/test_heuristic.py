"""The reward that retain guesses where nobody gave one."""

import pytest

from retrieval.kinds import RunOutcome
from writer.retain.heuristic import heuristic_reward


@pytest.mark.parametrize(("outcome", "whole"), [("success", 1.0), ("partial", 0.5), ("failure", 0.0), ("aborted", 0.0)])
def test_the_outcome_is_worth_half_where_a_tool_was_left_on_an_error(outcome: RunOutcome, whole: float):
    assert heuristic_reward(outcome, unresolved=False) == whole
    assert heuristic_reward(outcome, unresolved=True) == whole / 2
