"""The worked example: a column added without its data type, and what the next task gets from that."""

from datetime import UTC, datetime

import asyncpg
import pytest
from sqlalchemy import select

from app.postgres.pools import dsn
from app.providers.wordllama import WordLlamaEmbedder
from retrieval.pages.procedures import procedure_of
from retrieval.ranking.retrieved import Question
from retrieval.retrieve import Reader
from retrieval.search.candidates import CaseSearch
from retrieval.tables.cases import cases
from retrieval.tables.procedures import procedures
from tests.writer.conftest import AGENT, Bank
from writer.analysis.calls import StoredRun
from writer.procedures.ports import Analysis
from writer.procedures.rules.learners import RuleLearners
from writer.queue.worker import Worker
from writer.retain.retain import retain
from writer.run import FinishedRun, ProcedureData

FORGETFUL = "ALTER TABLE users ADD COLUMN last_name;"
NEXT = "Add an age column to the profiles table"
CORRECTED = "ALTER TABLE users ADD COLUMN last_name text;"


@pytest.fixture
async def shop(database_url: str):
    """A database operator's own tables, in a schema beside the bank's."""
    connection = await asyncpg.connect(dsn(database_url))
    await connection.execute("CREATE SCHEMA shop; SET search_path TO shop")
    await connection.execute(
        "CREATE TABLE users (id bigint PRIMARY KEY); CREATE TABLE profiles (id bigint PRIMARY KEY)"
    )
    yield connection
    await connection.execute("DROP SCHEMA shop CASCADE")
    await connection.close()


async def execute(connection: asyncpg.Connection, statement: str) -> dict[str, object]:
    """Runs the statement, and returns the call as an operator's trace has it."""
    try:
        output, status = await connection.execute(statement), "ok"
    except asyncpg.PostgresError as error:
        output, status = str(error), "error"
    return {"tool": "sql", "input": {"statement": statement}, "output": output, "status": status}


async def finish(bank: Bank, user: str, task: str, traces: list[dict[str, object]], outcome: str = "success") -> None:
    """Retains the run and lets the worker finish it."""
    fields = {"agent": AGENT, "task": task, "outcome": outcome, "plan": ["ALTER TABLE"], "tool_traces": traces}
    await retain(bank.database, bank.keyring, FinishedRun.model_validate(fields), bank.author(user))
    while await Worker(bank.database, WordLlamaEmbedder(), bank.keyring).run_once():
        pass


async def test_what_was_learned_from_a_missing_data_type_is_found_for_the_next_column(
    bank: Bank, user: str, shop: asyncpg.Connection
):
    # An operator is asked for a column, forgets its type, is told so by Postgres, and corrects the statement.
    traces = [await execute(shop, FORGETFUL), await execute(shop, CORRECTED)]
    assert [trace["status"] for trace in traces] == ["error", "ok"]
    await finish(bank, user, "Add a last_name column to the users table", traces)
    # Another run, in which nothing failed, teaches no fix.
    await finish(bank, user, "Send the weekly report to the team", [{"tool": "mail", "output": "sent"}])

    # Nobody wrote a procedure, and there is one, of what had to be changed and without the names of that table.
    fixes = select(procedures.c.id, procedures.c.version, procedures.c.record).where(procedures.c.level.is_(None))
    (row,) = await bank.read(user, fixes)
    lesson = ProcedureData.model_validate(row.record)
    assert row.version == 1
    assert "a syntax error" in lesson.initial_failure_summary
    assert "`text` added" in lesson.successful_intervention
    assert "ALTER TABLE <identifier> ADD COLUMN <identifier> text" in lesson.learned_procedure_steps[0]
    assert "last_name" not in str(row.record)

    # The next task is another column of another table; it gets the case, and with the case its lesson.
    question = Question(CaseSearch(AGENT, NEXT), k=1)
    reader = Reader(bank.database, WordLlamaEmbedder())
    slate = await reader.retrieve(user, datetime.now(UTC), question)
    (choice,) = slate.choices
    assert choice.row.task == "Add a last_name column to the users table"
    (found,) = await bank.read(user, procedure_of(user, choice.row.id))
    assert ProcedureData.model_validate(found.record) == lesson
    assert [(told.id, told.version) for told in slate.procedures] == [(row.id, 1)]
    assert lesson.learned_procedure_steps[0] in slate.context.text
    assert "guidance and not orders" in slate.context.text
    assert "report" not in slate.context.text

    # With the type in the statement it succeeds the first time, and there is no other fix to learn; the script of
    # the first run is the second one's as well.
    first_try = await execute(shop, "ALTER TABLE profiles ADD COLUMN age integer;")
    assert first_try["status"] == "ok"
    await finish(bank, user, NEXT, [first_try])
    assert len(await bank.read(user, fixes)) == 1
    scripts = select(procedures.c.trigger, procedures.c.occurrences).where(procedures.c.level.is_not(None))
    when = (
        "Add a <identifier> column to the <identifier> table (for example: Add a last_name column to the users table)"
    )
    assert sorted(await bank.read(user, scripts)) == [(when, 2), ("Send the weekly report to the team", 1)]


async def test_what_was_never_put_right_is_a_warning_and_no_fix(bank: Bank, user: str, shop: asyncpg.Connection):
    await finish(bank, user, "Add a nickname column", [await execute(shop, FORGETFUL)], "failure")
    (case_id,) = await bank.ids(user, "ready")
    (row,) = await bank.read(user, select(procedures.c.kind, procedures.c.record, procedures.c.case_id))
    assert (row.kind, row.case_id) == ("failure_lesson", case_id)
    assert row.record["procedure_name"].startswith("Avoid: sql")
    assert [told.kind for told in await bank.read(user, procedure_of(user, case_id))] == ["failure_lesson"]


async def test_an_analyst_that_fails_costs_the_lesson_and_not_the_case(bank: Bank, user: str):
    class Confused(RuleLearners):
        async def analyse(self, run: StoredRun, level: object = None) -> Analysis:
            raise RuntimeError(run.task, level)

    fields = {"agent": AGENT, "task": "Add a column", "outcome": "success", "tool_traces": []}
    await retain(bank.database, bank.keyring, FinishedRun.model_validate(fields), bank.author(user))
    worker = Worker(bank.database, WordLlamaEmbedder(), bank.keyring, rules=Confused())
    while await worker.run_once():
        pass
    (row,) = await bank.read(user, select(cases.c.status, cases.c.attempts, cases.c.last_error))
    assert (row.status, row.last_error) == ("ready", None)


async def test_a_procedure_that_the_run_brought_is_kept_as_it_was(bank: Bank, user: str):
    brought = dict.fromkeys(ProcedureData.model_fields, "mine") | {
        "learned_procedure_steps": ["a step"],
        "critical_contextual_cues": [],
    }
    failing = [{"tool": "a", "output": "x", "status": "error"}, {"tool": "a", "input": 1}]
    fields = {"agent": AGENT, "task": "t", "outcome": "success", "tool_traces": failing, "procedure": {"data": brought}}
    await retain(bank.database, bank.keyring, FinishedRun.model_validate(fields), bank.author(user))
    while await Worker(bank.database, WordLlamaEmbedder(), bank.keyring).run_once():
        pass
    (row,) = await bank.read(user, select(procedures.c.record))
    assert row.record == brought
