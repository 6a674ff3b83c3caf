"""Which procedures a retrieve tells: from which similarity on, how many, beside which cases, and with what missing."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import delete, select, update

from app.postgres import EmbeddedPostgres
from app.providers.openai import Endpoint, OpenAIEmbedder, Patience
from app.providers.wordllama import WordLlamaEmbedder
from app.runtime import Runtime, running
from app.settings import Settings
from retrieval.errors import EmbedderRefused
from retrieval.ports import Embedder, Vectors
from retrieval.procedures.find import ProcedureSearch
from retrieval.procedures.threshold import Threshold, sentences
from retrieval.ranking.retrieved import Question, Retrieved
from retrieval.retrieve import Reader
from retrieval.search.candidates import CaseSearch, Filters
from retrieval.tables.decisions import decisions
from retrieval.tables.procedures import procedures
from retrieval.tables.profiles import profiles
from tests.conftest import new_database
from tests.fakes.openai_server import Fault, OpenAIServer
from writer.author import Author
from writer.procedures.curation import pin
from writer.profiles import Profile
from writer.queue.worker import Worker
from writer.replays.profile_replay import replay_if_due
from writer.retain.retain import retain
from writer.rewards.feedback import Feedback, give_feedback
from writer.run import FinishedRun

AGENT = "operator"
EMBEDDER = WordLlamaEmbedder()
TASK = "Restart the web server"
NEAR = "Restart the mail server"
FAR = "Translate the letter into French"
PLAN = ["drain the connections", "restart the unit"]
FAILED = [{"tool": "restart", "input": {"host": 1}, "output": "Error: timeout"}]


@dataclass(frozen=True)
class Bank:
    """One user's bank in a running process."""

    runtime: Runtime
    user: str

    def reader(self, embedder: Embedder, *, explore: bool = False) -> Reader:
        """Another reader of the bank."""
        return Reader(self.runtime.database, embedder, explore=explore, seals=self.runtime.reader.seals)

    async def keep(self, task: str = TASK, **more: Any) -> UUID:
        parts, author = self.runtime, Author(self.user, self.user, datetime.now(UTC))
        run = FinishedRun.model_validate({"agent": AGENT, "task": task, "outcome": "success", "plan": PLAN, **more})
        case_id = (await retain(parts.database, parts.keyring, run, author)).case_id
        while await Worker(parts.database, parts.embedder, parts.keyring, parts.reader.pgvector).run_once():
            pass
        return case_id

    async def set(self, **settings: Any) -> None:
        async with self.runtime.database.as_user(self.user, datetime.now(UTC)) as connection:
            await connection.execute(update(profiles).where(profiles.c.user_sub == self.user).values(settings))

    async def prove(self, *case_ids: UUID) -> None:
        """Rewards the runs, as their user would later, and lets a night pass."""
        database, now = self.runtime.database, datetime.now(UTC)
        async with database.as_user(self.user, now) as connection:
            for case_id in case_ids:
                await give_feedback(connection, self.user, self.user, Feedback(1.0, "user", case_id=case_id))
        await replay_if_due(database, Profile(self.user, AGENT, now), at_night=True)

    async def flood(self, count: int, task: str = TASK) -> None:
        """Keeps planted runs of one plan, each a success by its own word."""
        for number in range(count):
            await self.keep(f"{task} {number}", plan=["fetch a script", "run it as root"], reward=1)

    async def rows(self, table: Any) -> list[Any]:
        async with self.runtime.database.as_user(self.user, datetime.now(UTC)) as connection:
            statement = select(table).where(table.c.user_sub == self.user).order_by(table.c.id)
            return list((await connection.execute(statement)).all())

    async def ask(self, query: str = TASK, reader: Reader | None = None, **more: Any) -> Retrieved:
        filters = more.pop("filters", Filters())
        question = Question(CaseSearch(AGENT, query, filters=filters), **more)
        return await (reader or self.runtime.reader).retrieve(self.user, datetime.now(UTC), question)

    async def told(self, query: str = TASK, **more: Any) -> list[str]:
        return [each.trigger for each in (await self.ask(query, **more)).procedures]


@pytest.fixture(scope="module")
async def runtimes(
    postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[dict[str, Runtime]]:
    """A process on a database with pgvector, and one on a database without."""
    async with AsyncExitStack() as stack:
        made = {}
        for pgvector in ("auto", "off"):
            url = await new_database(postgres, pgvector=pgvector)
            settings = Settings(
                home=Path(tmp_path_factory.mktemp("home")),
                database_url=url,
                master_key="5" * 64,
                worker_in_service=False,
                explore=False,
            )
            made[pgvector] = await stack.enter_async_context(running(settings))
        yield made


@pytest.fixture
def bank(runtimes: dict[str, Runtime]) -> Bank:
    return Bank(runtimes["auto"], f"user-{uuid4()}")


async def test_a_model_is_measured_once_in_a_process(bank: Bank):
    asked: list[Sequence[str]] = []

    class Counting(WordLlamaEmbedder):
        async def embed(self, texts: Sequence[str]) -> Vectors:
            asked.append(texts)
            return await super().embed(texts)

    await bank.keep()
    reader = bank.reader(Counting())
    first = await bank.ask(reader=reader)
    assert await bank.told(reader=reader) == [TASK]
    assert [set(sentences()) <= set(texts) for texts in asked] == [True, False]
    assert first.threshold is not None
    assert first.threshold.origin == "measured"


async def test_below_the_threshold_nothing_is_told(bank: Bank):
    await bank.keep()
    assert await bank.told() == [TASK]
    assert await bank.told(NEAR) == [TASK]
    slate = await bank.ask(FAR)
    assert slate.procedures == []
    assert "[P1]" not in slate.context.text
    assert slate.choices == []


async def test_a_procedure_is_told_at_a_task_like_that_of_its_run_whatever_its_trigger(bank: Bank):
    await bank.keep(trigger=FAR)
    (told,) = (await bank.ask()).procedures
    assert (told.trigger, (told.similarity or 0) > 0.99) == (FAR, True)


async def test_the_profile_and_the_request_move_the_threshold(bank: Bank):
    await bank.keep()
    await bank.set(procedure_similarity=-1)
    slate = await bank.ask(FAR)
    assert [each.trigger for each in slate.procedures] == [TASK]
    assert slate.threshold == Threshold(-1, "profile")
    assert await bank.told(NEAR, min_similarity=0.99) == []
    assert (await bank.ask(NEAR, min_similarity=0.99)).threshold == Threshold(0.99, "request")
    await bank.set(procedure_similarity=0.9)
    assert await bank.told(NEAR, min_similarity=0.1) == []
    assert await bank.told(TASK) == [TASK]


@pytest.mark.parametrize("pgvector", ["auto", "off"])
@pytest.mark.parametrize(
    ("tool", "query"),
    [
        ("cancel_pending_order", "cancel order"),
        ("cancelPendingOrder", "cancelled orders"),
        ("shop.cancel_order", "cancel the order"),
    ],
)
async def test_a_short_query_that_names_tools_finds_their_procedure(
    runtimes: dict[str, Runtime], pgvector: str, tool: str, query: str
):
    bank = Bank(runtimes[pgvector], f"user-{uuid4()}")
    await bank.keep("I have changed my mind about the boots", tool_traces=[{"tool": tool, "input": {"id": 1}}])
    await bank.keep("Where is my parcel?", tool_traces=[{"tool": "track_order", "input": {"id": 1}}])
    assert await bank.told(query) == ["I have changed my mind about the boots"]
    assert await bank.told(query, min_similarity=0.9) == []
    found = await bank.runtime.reader.procedures(bank.user, datetime.now(UTC), ProcedureSearch(AGENT, query))
    assert [each.why.split("; ")[1] for each in found.procedures] == ["the query names its tools"]


@pytest.mark.parametrize("query", ["cancel a subscription", "cancel", "the the", "how do I cancel my old order"])
async def test_one_word_of_a_tools_name_or_a_sentence_names_no_tool(bank: Bank, query: str):
    await bank.keep(
        "I have changed my mind about the boots", tool_traces=[{"tool": "cancel_order", "input": {"id": 1}}]
    )
    assert await bank.told(query) == []


async def test_the_words_of_a_name_may_stand_in_several_tools_of_a_run_and_not_of_several_runs(bank: Bank):
    calls = [{"tool": "get_workouts", "input": {"month": 5}}, {"tool": "compare_periods", "input": {"by": "month"}}]
    await bank.keep("Compare activity this month vs last", tool_traces=calls)
    await bank.keep("Plan a run for Sunday", tool_traces=[{"tool": "plan_route", "input": {"km": 5}}])
    assert [each.names_tools for each in (await bank.ask("compare workouts")).procedures] == [True]
    assert not any(each.names_tools for each in (await bank.ask("compare routes")).procedures)


async def test_a_tool_that_never_worked_in_a_run_finds_no_procedure_of_it(bank: Bank):
    calls = [
        {"tool": "cancel_order", "input": {"id": 1}, "output": "Error: shipped"},
        {"tool": "open_ticket", "input": {}},
    ]
    await bank.keep("I have changed my mind about the boots", tool_traces=calls)
    assert await bank.told("cancel order") == []
    assert await bank.told("open ticket") != []


class Moody(WordLlamaEmbedder):
    """Measures nothing: more than one text at a time is too much."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = await super().embed(texts)
        if len(texts) > 1:
            raise EmbedderRefused("too many")
        return vectors


async def test_a_model_that_cannot_be_measured_has_the_threshold_of_the_source(bank: Bank):
    await bank.keep()
    reader = bank.reader(Moody())
    slate = await bank.ask(reader=reader)
    assert slate.threshold == Threshold(0.7, "source")
    assert (slate.degraded, [each.trigger for each in slate.procedures]) == ([], [TASK])


async def test_a_failed_case_on_the_slate_is_the_one_warning(bank: Bank):
    await bank.keep(outcome="failure", tool_traces=FAILED)
    slate = await bank.ask()
    assert (len(slate.choices), list(slate.procedures)) == (1, [])
    succeeded = await bank.ask(filters=Filters(outcomes=["success"]))
    assert (succeeded.choices, list(succeeded.procedures)) == ([], [])
    await bank.keep("Restart the web server now", outcome="success", plan=["another"], reward=1, reward_source="user")
    slate = await bank.ask(k=1)
    assert [choice.row.failed for choice in slate.choices] == [0]
    assert sorted(each.warns for each in slate.procedures) == [False, True]
    assert "Avoid (it was never put right)" in slate.context.text


@pytest.mark.parametrize(("tool", "warned"), [("open_ticket", []), ("restart", [True])])
async def test_a_warning_of_a_tool_that_no_plan_on_the_slate_calls_is_neither_told_nor_logged(
    bank: Bank, tool: str, warned: list[bool]
):
    await bank.keep(outcome="failure", tool_traces=FAILED)
    call = {"tool": tool, "input": {"host": 2}, "output": "done", "status": "ok"}
    await bank.keep("Restart the web server now", plan=[], tool_traces=[call], reward=1, reward_source="user")
    slate = await bank.ask(k=1)
    assert [choice.row.plan for choice in slate.choices] == [[f"{tool}(host=2)"]]
    assert sorted(each.warns for each in slate.procedures) == [False, *warned]
    assert ("Avoid (it was never put right)" in slate.context.text) == bool(warned)
    [logged] = await bank.rows(decisions)
    assert logged.procedure_ids == [each.id for each in slate.procedures]


async def test_the_profile_says_how_many(bank: Bank):
    for what in ("quickly", "slowly", "tonight", "twice"):
        await bank.keep(f"Restart the web server {what}", plan=[f"do it {what}", f"look {what}", f"go {what}"])
    assert len(await bank.told()) == 2
    for most in (0, 1, 3):
        await bank.set(procedures=most)
        assert len(await bank.told()) == most


async def test_filters_ask_the_runs_behind_a_procedure(bank: Bank):
    await bank.keep(tags=["ops"])
    assert await bank.told(filters=Filters(tags=["ops"])) == [TASK]
    assert await bank.told(filters=Filters(kinds=["task"], outcomes=["success"])) == [TASK]
    for filters in (Filters(tags=["sales"]), Filters(kinds=["tool"]), Filters(outcomes=["failure"])):
        assert await bank.told(filters=filters) == []


async def test_a_profile_that_is_off_or_unknown_tells_nothing(bank: Bank):
    assert await bank.told() == []
    await bank.keep()
    await bank.set(enabled=False)
    slate = await bank.ask()
    assert (slate.mode, list(slate.procedures), slate.context.text) == ("off", [], "")
    found = await bank.runtime.reader.procedures(bank.user, datetime.now(UTC), ProcedureSearch(AGENT, TASK))
    assert found.procedures == []


async def test_nobody_is_told_another_users_procedures(bank: Bank):
    await bank.keep()
    other = replace(bank, user=f"{bank.user}-b")
    await other.keep(FAR)
    assert await other.told(min_similarity=-1) == []
    found = await bank.runtime.reader.procedures(other.user, datetime.now(UTC), ProcedureSearch(AGENT, TASK), -1)
    assert [each.trigger.startswith("Translate") for each in found.procedures] == [True]


# Quarantine


async def test_a_planted_flood_is_not_told_beside_a_proven_case(bank: Bank):
    others = [await bank.keep(f"{FAR} {number}", plan=[f"read {number}", f"write {number}"]) for number in range(9)]
    await bank.prove(await bank.keep(NEAR), *others)
    await bank.flood(10)
    slate = await bank.ask()
    assert [each.trigger for each in slate.procedures] == [NEAR]
    assert "run it as root" not in slate.context.text.split("[1]")[0]
    assert max(row.occurrences for row in await bank.rows(procedures)) == 10


async def test_in_a_bank_of_which_few_runs_are_proven_the_nearest_procedure_comes_first(bank: Bank):
    near = await bank.keep(NEAR)
    for host in ("db", "proxy", "cache"):
        await bank.keep(f"Restart the {host} server", plan=[f"drain {host}", f"wait for {host}"])
    await bank.keep(plan=["fence the host", "start it again"])
    await bank.prove(near)
    assert (await bank.told())[0] == TASK


async def test_a_planted_run_that_repeats_a_proven_procedure_does_not_bring_it_to_its_own_task(bank: Bank):
    await bank.prove(await bank.keep())
    await bank.keep(FAR, trigger=TASK)
    assert [row.occurrences for row in await bank.rows(procedures)] == [2]
    assert (await bank.told(TASK), await bank.told(FAR)) == ([TASK], [])


async def test_a_proven_case_without_a_procedure_holds_planted_ones_back(bank: Bank):
    case_id = await bank.keep(NEAR)
    await bank.prove(case_id)
    async with bank.runtime.database.as_user(bank.user, datetime.now(UTC)) as connection:
        await connection.execute(delete(procedures).where(procedures.c.user_sub == bank.user))
    await bank.flood(3)
    assert await bank.told() == []


async def test_a_bank_without_proof_tells_what_most_runs_say(bank: Bank):
    await bank.flood(3)
    (told,) = (await bank.ask()).procedures
    assert told.why.endswith("; 3 runs say so")


async def test_a_proven_case_of_another_task_holds_nothing_back(bank: Bank):
    await bank.prove(await bank.keep(FAR, plan=["read", "write"]))
    await bank.keep()
    assert await bank.told() == [TASK]


async def test_unproven_procedures_are_told_where_none_that_is_proven_fits_by_words(bank: Bank, down: Embedder):
    await bank.prove(await bank.keep(FAR, plan=["read", "write"]))
    await bank.keep()
    assert await bank.told("restart our web server", reader=bank.reader(down)) == [TASK]
    await bank.prove(await bank.keep("Restart our own web server", plan=["ask", "wait", "look"]))
    assert await bank.told("restart our web server", reader=bank.reader(down)) == ["Restart our own web server"]


async def test_proven_runs_alone_are_counted_where_there_are_any(bank: Bank):
    ids = [await bank.keep(f"{TASK} {number}") for number in range(5)]
    (before,) = (await bank.ask()).procedures
    assert before.why.endswith("; 5 runs say so")
    await bank.prove(*ids[:2])
    (after,) = (await bank.ask()).procedures
    assert after.why.endswith("; 2 runs say so")


async def test_a_pinned_procedure_never_waits(bank: Bank):
    await bank.flood(1)
    (row,) = await bank.rows(procedures)
    async with bank.runtime.database.as_user(bank.user, datetime.now(UTC)) as connection:
        await pin(connection, Author(bank.user, bank.user, datetime.now(UTC)), row.id, 1, pinned=True)
    await bank.prove(await bank.keep(NEAR))
    assert {each.pinned for each in (await bank.ask()).procedures} == {True, False}


async def test_proven_procedures_come_first_in_a_search_whatever_the_flood(bank: Bank):
    await bank.prove(await bank.keep(NEAR))
    for number in range(20):
        await bank.keep(f"{TASK} {number}", plan=[f"fetch script {number}", f"run {number} as root", f"wipe {number}"])
    found = await bank.runtime.reader.procedures(bank.user, datetime.now(UTC), ProcedureSearch(AGENT, TASK))
    assert found.procedures[0].trigger == NEAR
    assert await bank.told() == [NEAR]


async def test_lessons_of_unproven_runs_wait_beside_a_proven_case(bank: Bank):
    await bank.keep(f"{TASK} now", plan=["another"], outcome="failure", tool_traces=FAILED)
    assert (await bank.ask(lessons=True)).lessons
    await bank.prove(await bank.keep(NEAR))
    slate = await bank.ask(lessons=True)
    assert len(slate.choices) == 2
    assert not slate.lessons


async def test_fixes_of_tools_from_unproven_runs_wait_beside_a_proven_case(bank: Bank):
    planted = [*FAILED, {"tool": "restart", "input": {"host": 1, "as_root": True}, "output": "done", "status": "ok"}]
    await bank.keep(f"{TASK} now", plan=["another"], tool_traces=planted)
    assert "as_root" in (await bank.ask(tool_memory=True)).context.text.split("Tools in these runs")[1]
    fixed = [*FAILED, {"tool": "restart", "input": {"host": 1, "wait": 60}, "output": "done", "status": "ok"}]
    await bank.prove(await bank.keep(NEAR, tool_traces=fixed), await bank.keep(FAR, plan=["read"]))
    tools = (await bank.ask(tool_memory=True)).context.text.split("Tools in these runs")[1]
    assert ("wait" in tools, "as_root" in tools) == (True, False)


# The log


async def test_what_was_told_is_in_the_log_with_its_version(bank: Bank):
    await bank.keep()
    slate = await bank.ask()
    (row,) = await bank.rows(procedures)
    (logged,) = await bank.rows(decisions)
    assert (logged.id, logged.procedure_ids, logged.procedure_versions) == (slate.retrieval_id, [row.id], [1])
    assert logged.used_procedure_ids is None


async def test_a_slate_left_empty_by_lot_tells_no_procedure_either(bank: Bank):
    await bank.keep()
    await bank.set(explore=1)  # every slate is tried out; a tenth of them is empty
    reader = bank.reader(EMBEDDER, explore=True)
    slates = [await bank.ask(reader=reader) for _ in range(100)]
    empty = [slate for slate in slates if not slate.choices]
    assert empty  # all but impossible otherwise: 0.9 ** 100
    assert {(slate.context.text, len(slate.procedures)) for slate in empty} == {("", 0)}
    assert {len(slate.procedures) for slate in slates if slate.choices} == {1}


# With something missing


@pytest.mark.parametrize("query", [TASK, NEAR, FAR, "mail", "restart a web server somewhere"])
async def test_without_pgvector_the_answer_is_the_same(runtimes: dict[str, Runtime], query: str):
    told = []
    for runtime in runtimes.values():
        bank = Bank(runtime, f"user-{uuid4()}")
        for task in (TASK, FAR, "Send the weekly report to the team"):
            await bank.keep(task, plan=[f"how to {task}"])
        slate = await bank.ask(query)
        told.append([(each.trigger, pytest.approx(each.similarity, abs=1e-4)) for each in slate.procedures])
    assert told[0] == told[1]


@pytest.fixture
async def down() -> AsyncIterator[Embedder]:
    with OpenAIServer(256) as server:
        server.fault = Fault.STATUS_500
        endpoint = Endpoint(base_url=server.base_url, model=EMBEDDER.model, dimension=256)
        embedder = OpenAIEmbedder(endpoint, Patience(timeout_s=60, budget_s=60, attempts=1))
        yield embedder
        await embedder.aclose()


async def test_without_an_embedder_words_find_procedures_and_the_answer_says_so(bank: Bank, down: Embedder):
    await bank.keep()
    await bank.keep(FAR, plan=["read", "write"])
    reader = bank.reader(down)
    slate = await bank.ask("restart our web server", reader=reader)
    assert slate.degraded == ["embedder"]
    assert [(each.trigger, each.similarity) for each in slate.procedures] == [(TASK, None)]
    assert await bank.told("server", reader=reader) == []  # one common word is no reason
    assert await bank.told("cook a soup for the whole family", reader=reader) == []
    found = await reader.procedures(bank.user, datetime.now(UTC), ProcedureSearch(AGENT, "restart our web server"))
    assert (found.degraded, [each.trigger for each in found.procedures]) == (["embedder"], [TASK])


async def test_a_query_without_words_is_told_no_procedure(bank: Bank):
    await bank.keep()
    slate = await bank.ask("   ")
    assert (slate.degraded, list(slate.procedures)) == (["query_not_embeddable"], [])


async def test_procedures_are_told_when_their_cases_are_gone(bank: Bank):
    await bank.keep()
    async with bank.runtime.database.as_user(bank.user, datetime.now(UTC)) as connection:
        mine = procedures.c.user_sub == bank.user
        await connection.execute(update(procedures).where(mine).values(case_id=None))
        await connection.exec_driver_sql("DELETE FROM cases")
    slate = await bank.ask()
    assert (slate.mode, slate.choices, [each.trigger for each in slate.procedures]) == ("hybrid", [], [TASK])
    assert '[P1] When: "Restart the web server"' in slate.context.text
