"""The text of a lesson: what to do after a passing failure, and what to leave after one that nothing put right."""

from typing import Any

import pytest

from writer.analysis.calls import StoredRun
from writer.analysis.failures import find
from writer.procedures.rules.fix_text import failure_lesson, learned_fix
from writer.procedures.rules.learners import explain


def run(*outputs: str, outcome: str = "success") -> StoredRun:
    traces: list[dict[str, Any]] = [{"tool": "search", "input": {"q": "ada"}, "output": output} for output in outputs]
    return StoredRun("find ada", outcome, traces)


def test_a_call_that_passed_when_repeated_is_to_be_repeated_after_a_pause():
    stored = run("Error: 503 Service Unavailable", "done")
    found = find(stored.calls, (), succeeded=True)
    lesson = learned_fix(stored, found, found.recovered[0])
    assert lesson.learned_procedure_steps == [
        "When search answers with an unavailable-service error, repeat the call with the same arguments.",
        "Wait a little before each further repetition.",
    ]


@pytest.mark.parametrize("concrete", [False, True])
def test_a_fix_tells_what_made_the_difference_and_the_words_of_the_error(*, concrete: bool):
    first = {"order": "W1042", "method": "original", "url": "https://shop.example/v1/refunds"}
    second = {"order": "W1042", "method": "store_credit", "url": "https://shop.example/v2/refunds"}
    traces = [
        {"tool": "refund", "input": first, "output": "Error: a refund over 50 needs approval", "status": "error"},
        {"tool": "refund", "input": second, "output": "done"},
    ]
    stored = StoredRun("refund the order W1042", "success", traces)
    failures = find(stored.calls, (), succeeded=True, concrete=concrete)
    lesson = learned_fix(stored, failures, failures.recovered[0])
    assert lesson.learned_procedure_steps == [
        'Call refund with order=<id>, method="store_credit", url=<url>.',
        (
            "Check the arguments before the call; what put it right: "
            'method: "store_credit" in place of "original"; url: v2 in place of v1.'
        ),
    ]
    assert "needs approval" in lesson.identified_root_cause
    assert "W1042" not in lesson.model_dump_json()
    assert "shop.example" not in lesson.model_dump_json()


@pytest.mark.parametrize("outcome", ["success", "failure"])
def test_a_value_of_any_call_of_the_run_is_no_word_of_the_lesson(outcome: str):
    traces: list[dict[str, Any]] = [
        {"tool": "find_customer", "input": {"name": "anna"}, "output": "C-17"},
        {"tool": "refund", "input": {"customer": "C-17"}, "output": "Error: store credit only"},
        {"tool": "refund", "input": {"customer": "C-17", "credit": True}, "output": "done"},
    ]
    stored = StoredRun("refund the lamp to anna", outcome, traces if outcome == "success" else traces[:2])
    lesson = explain(stored).lesson
    assert lesson is not None
    assert "in a task like: refund the lamp to <identifier>" in lesson.semantic_description
    assert "anna" not in lesson.model_dump_json()


def test_a_failure_without_a_fix_says_what_to_leave_and_how_the_run_ended():
    stored = run("Error: user not found", "Error: user not found", outcome="failure")
    found = find(stored.calls, (), succeeded=False)
    lesson = failure_lesson(stored, found, found.lost[0])
    assert lesson.learned_procedure_steps[0].startswith("Do not repeat search with arguments of the form")
    assert lesson.learned_procedure_steps[1] == "Look for another way, or say early that it does not work."
    assert "outcome of the whole run: failure" in lesson.critical_contextual_cues


def test_an_edit_that_put_a_test_right_is_told_with_its_lines():
    calls = [
        {"tool": "bash", "input": {"command": "pytest -q"}, "output": "E   assert 12 == 10\n1 failed in 0.2s"},
        {"tool": "edit_file", "input": {"path": "cart.py", "old": "return sum(p)", "new": "return sum(p) - off"}},
        {"tool": "bash", "input": {"command": "pytest -q"}, "output": "4 passed in 0.2s"},
    ]
    lesson = explain(StoredRun("Fix the cart", "success", calls)).lesson
    assert lesson is not None
    assert lesson.learned_procedure_steps == [
        "Call edit_file (`return sum(p) - off` in place of `return sum(p)`).",
        "Call bash with command=`pytest -q`.",
    ]
