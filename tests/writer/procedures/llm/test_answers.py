"""The forms of a model's answers, and what of one is stored."""

from typing import Any

import pytest

from app.providers.llm import OpenAIModel
from tests.fakes.chat_server import ChatServer
from tests.lessons import FIXED, RECORD
from tests.writer.model_answers import REVISED, SCRIPT_RECORD, ByRule, learners_of
from writer.procedures.llm.learners import LlmLearners
from writer.procedures.ports import ProcedureDraft
from writer.procedures.rules.learners import explain
from writer.run import ProcedureData, ScriptData


@pytest.mark.parametrize(
    "answer",
    [
        {"status": "no_failure_detected", "data": RECORD},
        {"status": "procedure_learned", "data": None},
        {"status": "procedure_learned", "data": RECORD | {"learned_procedure_steps": []}},
        {"status": "procedure_learned", "data": RECORD | {"procedure_name": "x" * 201}},
        {"status": "procedure_learned", "data": RECORD | {"note": "more"}},
        {"status": "solved", "data": RECORD},
    ],
    ids=["data_without_failure", "failure_without_data", "no_steps", "too_long", "extra", "unknown_status"],
)
async def test_an_answer_that_is_no_learned_procedure_record_is_repaired_once_and_then_left(
    server: ChatServer, analyst: LlmLearners, answer: dict[str, Any]
):
    server.says = lambda _: answer
    assert await analyst.analyse(FIXED) == explain(FIXED)
    assert server.count == 2


async def test_a_nul_in_an_answer_becomes_the_sign_for_an_unknown_character(server: ChatServer, analyst: LlmLearners):
    server.says = lambda _: {"status": "procedure_learned", "data": RECORD | {"procedure_name": "a\x00b"}}
    analysis = await analyst.analyse(FIXED)
    assert analysis.lesson
    assert (analysis.lesson.procedure_name, analysis.origin, server.count) == ("a\ufffdb", "llm", 1)


async def test_what_looks_like_a_secret_or_a_line_break_is_taken_out_of_the_lesson(
    server: ChatServer, analyst: LlmLearners
):
    step = "Call sql\nas ada@example.com"
    server.says = lambda _: {"status": "procedure_learned", "data": RECORD | {"learned_procedure_steps": [step]}}
    analysis = await analyst.analyse(FIXED)
    assert analysis.lesson
    assert analysis.lesson.learned_procedure_steps == ["Call sql as [REDACTED:email]"]


@pytest.mark.parametrize("record", [ProcedureData(**RECORD), ScriptData(**SCRIPT_RECORD)], ids=["lesson", "script"])
async def test_a_revision_has_the_form_of_what_it_revises(
    server: ChatServer, model: OpenAIModel, record: ProcedureData | ScriptData
):
    used = ProcedureDraft("script", "rules", record, "To add", "ddl", "sql", "hybrid")
    better = record.model_dump() | {"procedure_name": "Check first"}
    server.says = lambda _: REVISED | {"data": better}
    draft = await learners_of(model, ByRule()).revise(used, FIXED, explain(FIXED))
    assert draft == ProcedureDraft("revision", "llm", type(record)(**better), "To add a column", "ddl", "sql", "hybrid")
