"""A successful run as a script: its levels, its trigger, and runs of any shape."""

import asyncio
import sys
from typing import Any

import pytest

from retrieval.tables.kinds import AbstractionLevel
from tests.writer.scripts import LEVELS, STATEMENT, TASK, call, run, script_of, steps
from writer.analysis.calls import StoredRun
from writer.procedures.learn_from_run import RunToLearnFrom, learn_from_run
from writer.procedures.rules.learners import RuleLearners
from writer.procedures.rules.script import script


def test_an_abstract_script_has_placeholders_alone():
    assert steps(call("sql", {"statement": STATEMENT}), level="abstract") == [
        "Call sql with statement=`ALTER TABLE <identifier> ADD COLUMN <identifier> text ;`."
    ]


def test_a_concrete_script_has_the_values():
    assert steps(call("sql", {"statement": STATEMENT}), level="concrete") == [f"Call sql with statement=`{STATEMENT}`."]


@pytest.mark.parametrize(
    ("level", "when"),
    [
        ("concrete", TASK),
        ("abstract", "Add a <identifier> column to the <identifier> table"),
        ("hybrid", f"Add a <identifier> column to the <identifier> table (for example: {TASK})"),
    ],
)
def test_the_trigger_is_the_task_at_the_level_of_the_script(level: AbstractionLevel, when: str):
    draft = script_of(call("sql", {"statement": STATEMENT}), level=level)
    assert (draft.trigger, draft.level, draft.kind, draft.origin) == (when, level, "script", "rules")


def test_no_value_of_the_run_is_left_in_an_abstract_script():
    draft = script_of(
        call("mail", {"to": "ada@example.org", "order": "#W2378156", "who": "Mei_Kovacs"}), level="abstract"
    )
    for value in ("ada", "W2378156", "Mei"):
        assert value not in str(draft)


def test_words_of_prose_and_small_words_are_no_values_of_the_task():
    draft = script_of(call("inspect", "the catalog"), call("look", {"at": "the sea"}), call("sql", STATEMENT))
    assert draft.trigger.startswith("Add a <identifier> column to the <identifier> table (")


@pytest.mark.parametrize(
    ("level", "step"),
    [
        ("concrete", "Look up anna"),
        ("abstract", "Look up <identifier>"),
        ("hybrid", "Look up <identifier> (for example: Look up anna)"),
    ],
)
def test_words_that_are_values_in_the_calls_are_values_in_the_plan_beside_them(level: AbstractionLevel, step: str):
    done, plan = run(call("find_customer", {"name": "anna"})), ["Look up anna"]
    lessons = asyncio.run(learn_from_run(RunToLearnFrom(done, plan=plan), RuleLearners(), level))
    assert [draft.record.model_dump()["plan"] for draft in lessons.drafts] == [[step]]


def test_a_plan_is_the_steps_of_a_run_without_calls():
    plan = ["Open the file /etc/hosts", "Open the file /etc/hosts", "", "Add the line"]
    assert steps(plan=plan, level="abstract") == ["Open the file <path>", "Add the line"]
    assert steps(plan=plan)[0] == "Open the file <path> (for example: Open the file /etc/hosts)"


@pytest.mark.parametrize("level", LEVELS)
def test_a_step_of_a_plan_with_hundreds_of_values_is_shortened(level: AbstractionLevel):
    assert "…" in steps(plan=["12 " * 600], level=level)[0]


def test_a_run_that_did_nothing_has_no_script():
    assert script(run(), "hybrid") is None
    assert script(run(call("sql", None, "boom", "error")), "hybrid") is None


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "traces",
    [
        [None, 7, "text", [], {}, {"tool": 3}],
        [{"tool": "sql"}, {"tool": ""}, {"tool": "x", "input": {"": ["\ud800", 10**400]}}],
        [{"tool": "sql", "input": "a" * 1_000_000, "output": "b" * 5_000_000}],
        [{"tool": "sql", "input": {"k" * 100: {"deep": [[[[1]]]]}}, "output": {"é": "日本語"}}],
        [{"tool": "вызов инструмента", "input": {"имя": "Иван"}, "output": "готово"}],
    ],
    ids=["no traces", "odd values", "megabytes", "nested", "another script"],
)
def test_traces_of_any_shape_are_read(traces: list[Any], level: AbstractionLevel):
    draft = script(StoredRun("größere Änderung 変更 \x00", "success", traces, [None], ["計画 42"]), level)
    assert draft is not None
    for text in (draft.trigger, *draft.record.learned_procedure_steps):
        assert text.strip()
        assert text.isprintable()
        text.encode()


def test_work_grows_no_faster_than_the_calls():
    def lines(count: int) -> int:
        traces = [call(f"get_{n % 50}", {"id": f"x{n}"}, {"next": f"x{n + 1}"}) for n in range(count)]
        traces.append(call("change", {"id": f"x{count}"}))
        seen = 0

        def count_line(_frame: Any, event: str, _arg: Any) -> Any:
            nonlocal seen
            seen += event == "line"
            return count_line

        sys.settrace(count_line)
        try:
            script(run(*traces), "hybrid")
        finally:
            sys.settrace(None)
        return seen

    small, large = lines(50), lines(400)
    assert large < 9 * small


def test_the_same_run_gives_the_same_script_also_beside_the_event_loop():
    same = run(call("get_user", {"id": "u-1"}, "x"), call("sql", {"statement": STATEMENT}))
    assert asyncio.new_event_loop().run_until_complete(RuleLearners().abstract(same, "hybrid")) == script(
        same, "hybrid"
    )
