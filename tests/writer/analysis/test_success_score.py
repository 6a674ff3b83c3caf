"""The score that decides whether a run becomes a procedure."""

from typing import Any

import pytest

from writer.analysis.calls import StoredRun
from writer.analysis.success_score import success_score

OK = {"tool": "sql", "output": "done", "duration_ms": 10}
ERROR = {"tool": "sql", "output": "syntax error", "status": "error"}


def score(
    *traces: Any, outcome: str = "success", turns: Any = (), reward: float | None = None, source: str = ""
) -> float:
    return success_score(StoredRun("t", outcome, traces, turns), reward, source)


@pytest.mark.parametrize(
    ("traces", "expected"),
    [
        ([], 1.0),
        ([OK], 1.0),
        ([ERROR, OK], 0.8),
        ([ERROR, ERROR, ERROR, OK], 0.7),
        ([ERROR, ERROR, ERROR, ERROR, OK], 0.68),
        ([OK, ERROR], 0.4),
        ([{**OK, "status": "ok", "output": "Error: no such table"}], 0.2),
        ([{**OK, "duration_ms": 29_999}], 1.0),
        ([{**OK, "duration_ms": 15_000}] * 2, 0.8),
        ([{"tool": "sql"}], 1.0),
        ([{"tool": "sql", "output": ""}], 0.6),
    ],
)
def test_errors_response_and_time_are_weighed(traces: list[Any], expected: float):
    assert score(*traces) == pytest.approx(expected)


def test_in_a_conversation_the_response_is_what_the_agent_said():
    user, agent = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "done"}
    assert score(OK, turns=[user]) == pytest.approx(0.6)
    assert score(OK, turns=[user, {**agent, "content": " "}]) == pytest.approx(0.6)
    assert score(OK, turns=[user, agent]) == 1


@pytest.mark.parametrize(("outcome", "expected"), [("partial", 0.5), ("failure", 0), ("aborted", 0)])
def test_what_did_not_succeed_scores_half_or_nothing(outcome: str, expected: float):
    assert score(OK, outcome=outcome) == expected


def test_where_no_outcome_was_said_the_calls_count():
    assert score(OK, outcome="unknown") == 1
    assert score(ERROR, OK, outcome="unknown") == pytest.approx(0.8)
    assert score(OK, ERROR, outcome="unknown") < 0.7
    assert score(outcome="unknown") == 0


def test_a_reward_of_somebody_who_knows_counts_instead_but_makes_no_success_of_a_failure():
    assert score(ERROR, reward=0.9, source="user") == 0.9
    assert score(OK, reward=0.1, source="metric") == 0.1
    assert score(OK, reward=0.1, source="heuristic") == 1
    assert score(OK, outcome="failure", reward=1.0, source="judge") == 0
