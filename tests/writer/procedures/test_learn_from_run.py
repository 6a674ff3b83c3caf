"""What becomes a procedure: which runs, at which level, and what a learner that fails costs."""

from typing import Any

import pytest

from retrieval.tables.kinds import AbstractionLevel
from tests.writer.conftest import AGENT, Bank
from tests.writer.procedure_bank import (
    EMBEDDER,
    PLAN,
    TASK,
    calls,
    failing_run,
    finish,
    noted,
    stored,
    the_one,
)
from writer.analysis.calls import StoredRun
from writer.procedures.ports import Analysis, Learners, ProcedureDraft
from writer.procedures.rules.learners import RuleLearners
from writer.profiles import Profile
from writer.run import ScriptData


async def test_a_successful_run_is_a_script_with_its_attributes(bank: Bank, user: str):
    case_id = await finish(bank, user, tool_traces=calls("drain", "restart"), tags=["web", "ops"])
    row = await the_one(bank, user)
    assert (row.kind, row.origin, row.level, row.status, row.version) == ("script", "rules", "hybrid", "active", 1)
    assert (row.task_type, row.domain, row.trigger) == ("restart", "web", TASK)
    assert (row.case_id, row.source_case_ids, row.occurrences) == (case_id, [case_id], 1)
    assert ScriptData.model_validate(row.record).learned_procedure_steps[0].startswith("Call drain with host=")
    assert row.embedding_model == EMBEDDER.model
    assert len(await noted(bank, user, "add_procedure")) == 1


async def test_three_calls_that_worked_are_a_procedure_though_no_outcome_was_said(bank: Bank, user: str):
    await finish(bank, user, outcome="unknown", tool_traces=calls("look_up", "drain", "restart"))
    assert (await the_one(bank, user)).success_score == 1
    await finish(bank, user, "Stop the mail", outcome="unknown", tool_traces=calls("stop", failing="stop"))
    assert [row.kind for row in await stored(bank, user)] == ["script", "failure_lesson"]


async def test_the_kind_of_work_the_trigger_and_the_kind_of_request_that_the_backend_gave_are_those_of_its_procedures(
    bank: Bank, user: str
):
    given = {
        "task_type": "release",
        "trigger": "When a service has to be restarted without an outage",
        "query_kind": "workout comparison",
    }
    await finish(bank, user, tool_traces=calls("drain", "restart"), **given)
    row = await the_one(bank, user)
    assert (row.task_type, row.trigger, row.query_kind) == tuple(given.values())
    await finish(bank, user, "Write to Ann", plan=["draft the letter", "send it"], task_type="letter")
    assert {each.task_type for each in await stored(bank, user)} == {"release", "letter"}


async def test_a_plan_that_was_given_is_kept_beside_the_calls_and_one_made_of_them_is_not(bank: Bank, user: str):
    await finish(bank, user, plan=PLAN, tool_traces=calls("drain", "restart"))
    await finish(bank, user, "Stop the mail server", tool_traces=calls("stop_mail"))
    given, made = await stored(bank, user)
    assert given.record["plan"] == PLAN
    assert [step.split()[1] for step in given.record["learned_procedure_steps"]] == ["drain", "restart"]
    assert "plan" not in made.record
    await failing_run(bank, user, given.id)
    assert [row.record["plan"] for row in await stored(bank, user) if row.id == given.id] == [PLAN, PLAN]


async def test_a_run_of_a_plan_alone_has_a_kind_of_work_by_its_verb(bank: Bank, user: str):
    await finish(bank, user, "Compare three offers", plan=["ask for them", "write the table"])
    await finish(bank, user, "The summer party", plan=["ask for dates", "book a place", "hurray"])
    assert [row.task_type for row in await stored(bank, user)] == ["compare", "book"]


@pytest.mark.parametrize(
    "run",
    [
        {"outcome": "failure"},
        {"reward": 0.69, "reward_source": "user"},
        {"outcome": "partial"},
        {"turns": [{"role": "user", "content": "hello?"}]},
    ],
    ids=["failed", "little reward", "half done", "no response"],
)
async def test_a_run_below_the_least_success_is_none_until_the_profile_asks_for_less(
    run: dict[str, Any], bank: Bank, user: str
):
    await finish(bank, user, plan=PLAN, **run)
    assert await stored(bank, user) == []
    await bank.set_profile(user, least_success=0.5)
    await finish(bank, user, "Stop the mail server", plan=PLAN, **run)
    assert len(await stored(bank, user)) == (run.get("outcome") != "failure")


@pytest.mark.parametrize("level", ["off", "concrete", "abstract", "hybrid"])
async def test_the_profile_says_how_abstract_scripts_are(level: str, bank: Bank, user: str):
    await bank.add(user, {"task": "make the profile"})
    await bank.set_profile(user, abstraction=level)
    await finish(bank, user, "Delete order #W77", tool_traces=[{"tool": "delete", "input": {"id": "#W77"}}])
    rows = await stored(bank, user)
    assert [row.level for row in rows] == ([] if level == "off" else [level])
    texts = str([row.record["learned_procedure_steps"] for row in rows])
    assert ("#W77" in texts) == (level in {"concrete", "hybrid"})
    assert ("<id>" in texts) == (level in {"abstract", "hybrid"})


async def test_a_run_that_brings_its_own_record_is_not_abstracted(bank: Bank, user: str):
    names = ("procedure_name", "semantic_description", "initial_failure_summary", "identified_root_cause")
    record = dict.fromkeys([*names, "successful_intervention", "example_scenario_abstract"], "mine")
    record |= {"learned_procedure_steps": ["a step"], "critical_contextual_cues": []}
    await finish(bank, user, plan=PLAN, procedure={"data": record})
    row = await the_one(bank, user)
    assert (row.record, row.origin, row.level) == (record, "run", None)


class Broken(RuleLearners):
    async def abstract(self, run: StoredRun, level: AbstractionLevel) -> ProcedureDraft | None:
        raise RuntimeError(run.task, level)

    async def revise(self, used: ProcedureDraft, run: StoredRun, analysis: Analysis) -> ProcedureDraft | None:
        raise RuntimeError(used, run.task, analysis)


async def test_learners_that_fail_cost_their_lessons_and_not_the_case(bank: Bank, user: str):
    await finish(bank, user, plan=PLAN, worker={"rules": Broken()})
    assert len(await bank.ids(user, "ready")) == 1
    assert await stored(bank, user) == []


async def test_a_profile_that_wants_a_language_model_learns_by_it_and_others_by_rule(bank: Bank, user: str):
    asked: list[Profile] = []

    def llm(profile: Profile) -> Learners:
        asked.append(profile)
        return Broken()

    await finish(bank, user, plan=PLAN, worker={"llm": llm})
    assert (len(await stored(bank, user)), asked) == (1, [])
    await bank.set_profile(user, analyst="llm")
    await finish(bank, user, "Stop the mail server", plan=PLAN, worker={"llm": llm})
    assert len(await stored(bank, user)) == 1
    assert [(profile.user_sub, profile.agent_key) for profile in asked] == [(user, AGENT)]


async def test_a_trigger_without_words_costs_the_vector_and_not_the_case(bank: Bank, user: str):
    await finish(bank, user, "\u200b", plan=PLAN)
    assert (await the_one(bank, user)).trigger == "a task without words"
