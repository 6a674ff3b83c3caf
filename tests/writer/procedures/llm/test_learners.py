"""A language model may explain, abstract and revise; what it cannot do, or must not, the rules do."""

from typing import Any

import pytest

from app.providers.llm import OpenAIModel
from tests.fakes.chat_server import ChatFault, ChatServer
from tests.fakes.openai_server import Fault
from tests.lessons import FIXED, LEARNED, RECORD
from tests.writer.model_answers import (
    IMPATIENT,
    REVISED,
    SCRIPT,
    SCRIPT_RECORD,
    UNEVENTFUL,
    ByRule,
    fallbacks,
    learners_of,
    model_of,
)
from writer.analysis.calls import StoredRun
from writer.procedures.llm.learners import LlmLearners
from writer.procedures.ports import Analysis, ProcedureDraft
from writer.procedures.rules.learners import RuleLearners, explain
from writer.run import ProcedureData, ScriptData


async def test_what_the_model_learned_is_the_lesson(server: ChatServer, analyst: LlmLearners):
    server.says = lambda _: LEARNED
    analysis = await analyst.analyse(FIXED)
    assert (analysis.kind, analysis.lesson) == ("learned_fix", ProcedureData(**RECORD))
    assert analysis.wrapped() == LEARNED
    assert analysis.subject == explain(FIXED).subject


async def test_the_model_may_find_what_the_rules_do_not(server: ChatServer, analyst: LlmLearners):
    assert explain(UNEVENTFUL).kind is None
    server.says = lambda _: LEARNED | {"status": "failure_lesson"}
    analysis = await analyst.analyse(UNEVENTFUL)
    assert (analysis.kind, analysis.subject) == ("failure_lesson", None)


async def test_the_model_may_say_that_nothing_failed(server: ChatServer, analyst: LlmLearners):
    server.says = lambda _: {"status": "no_failure_detected", "data": None}
    analysis = await analyst.analyse(FIXED)
    assert analysis.wrapped() == {"status": "no_failure_detected"}
    assert analysis.recovered == explain(FIXED).recovered


async def test_a_run_without_calls_or_words_is_not_worth_a_model(server: ChatServer, analyst: LlmLearners):
    assert await analyst.analyse(StoredRun("Say hello", "success")) == Analysis()
    assert server.asked == []


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (ChatFault.PROSE, "misbehaved"),
        (ChatFault.WRONG_SCHEMA, "misbehaved"),
        (ChatFault.CUT, "misbehaved"),
        (Fault.HTML, "misbehaved"),
        (ChatFault.REFUSAL, "refused"),
        (Fault.STATUS_400, "refused"),
        (Fault.STATUS_401, "unavailable"),
        (Fault.STATUS_500, "unavailable"),
    ],
    ids=lambda value: getattr(value, "name", value).lower(),
)
async def test_a_model_without_a_usable_answer_leaves_it_to_the_rules_and_is_counted(
    server: ChatServer, analyst: LlmLearners, fault: Any, why: str
):
    before = fallbacks("analyse", why)
    server.says, server.fault = lambda _: LEARNED, fault
    assert await analyst.analyse(FIXED) == explain(FIXED)
    assert fallbacks("analyse", why) == before + 1


async def test_a_model_that_never_answers_leaves_it_to_the_rules(server: ChatServer):
    server.fault = Fault.NEVER
    model = model_of(server, IMPATIENT)
    assert await learners_of(model, RuleLearners()).analyse(FIXED) == explain(FIXED)
    await model.aclose()


async def test_the_models_script_is_a_draft_of_the_level_asked_for(server: ChatServer, model: OpenAIModel):
    server.says = lambda _: SCRIPT
    draft = await learners_of(model, ByRule()).abstract(UNEVENTFUL, "hybrid")
    assert draft == ProcedureDraft(
        "script", "llm", ScriptData(**SCRIPT_RECORD), "To add a column", "ddl", "sql", "hybrid"
    )


async def test_a_run_with_nothing_to_follow_has_no_script(server: ChatServer, model: OpenAIModel):
    server.says = lambda _: SCRIPT | {"status": "nothing_to_follow", "data": None}
    assert await learners_of(model, ByRule()).abstract(UNEVENTFUL, "hybrid") is None


async def test_without_a_usable_script_the_rules_abstract(server: ChatServer, model: OpenAIModel):
    server.fault = ChatFault.PROSE
    assert await learners_of(model, ByRule()).abstract(UNEVENTFUL, "hybrid") == ByRule().draft


async def test_a_procedure_that_was_not_the_reason_is_not_revised(server: ChatServer, model: OpenAIModel):
    server.says = lambda _: REVISED | {"status": "nothing_to_say", "data": None}
    assert await learners_of(model, ByRule()).revise(ByRule().draft, FIXED, explain(FIXED)) is None


async def test_without_a_usable_revision_the_rules_revise(server: ChatServer, model: OpenAIModel):
    server.fault = ChatFault.NULL
    assert await learners_of(model, ByRule()).revise(ByRule().draft, FIXED, explain(FIXED)) == ByRule().draft
