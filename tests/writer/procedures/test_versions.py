"""The registry on a real bank: what is stored, merged, revised, counted and rolled back, and what outlives what."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select, update

from app.providers.wordllama import WordLlamaEmbedder
from retrieval.errors import NotFound
from retrieval.kinds import AbstractionLevel
from retrieval.ranking.slate import Question, Retrieved
from retrieval.retrieve import Reader
from retrieval.schema import audit, cases, procedures
from retrieval.search.candidates import Search
from tests.writer.conftest import AGENT, Bank
from writer.analysis.calls import StoredRun
from writer.procedures import pinning
from writer.procedures.counters import Counters, clearly_worse
from writer.procedures.learn_from_run import rule_learners
from writer.procedures.ports import Analysis, Draft, Learners
from writer.profiles import Profile
from writer.retain.retain import retain
from writer.rewards.feedback import Feedback, give_feedback
from writer.rights.edit import delete_case
from writer.run import FinishedRun, ScriptData
from writer.upkeep.prune import prune
from writer.upkeep.reembed import reembed
from writer.worker.worker import Worker

EMBEDDER = WordLlamaEmbedder()
TASK = "Restart the web server"
PLAN = ["drain the connections", "restart the unit", "look at the health page"]
DAY = timedelta(days=1)


async def finish(bank: Bank, user: str, task: str = TASK, worker: dict[str, Any] | None = None, **more: Any) -> UUID:
    """Retains the run and lets the worker finish it."""
    run = FinishedRun.model_validate({"agent": AGENT, "task": task, "outcome": "success", **more})
    case_id = (await retain(bank.database, bank.keyring, run, bank.author(user))).case_id
    while await Worker(bank.database, EMBEDDER, bank.keyring, **(worker or {})).run_once():
        pass
    return case_id


def calls(*tools: str, failing: str = "") -> list[dict[str, Any]]:
    return [
        {"tool": tool, "input": {"host": "web-1"}, "output": "Error: not found" if tool == failing else "done"}
        for tool in tools
    ]


async def stored(bank: Bank, user: str) -> list[Any]:
    mine = select(procedures).where(procedures.c.user_sub == user)
    return await bank.read(user, mine.order_by(procedures.c.id, procedures.c.version))


async def the_one(bank: Bank, user: str) -> Any:
    (row,) = await stored(bank, user)
    return row


async def noted(bank: Bank, user: str, action: str) -> list[Any]:
    return await bank.read(user, select(audit).where(audit.c.user_sub == user, audit.c.action == action))


async def ask(bank: Bank, user: str, query: str = TASK, **more: Any) -> Retrieved:
    reader = Reader(bank.database, EMBEDDER)
    return await reader.retrieve(user, datetime.now(UTC), Question(Search(AGENT, query), **more))


async def ended(bank: Bank, user: str, slate: Retrieved, reward: float, used: Sequence[UUID] | None = None) -> UUID:
    """Finishes a run, without anything to learn from, that began with the slate."""
    said = {} if used is None else {"used_procedure_ids": [str(each) for each in used]}
    more = {"retrieval_id": slate.retrieval_id, "reward": reward, "reward_source": "user", **said}
    return await finish(bank, user, f"run {uuid4()}", outcome="success" if reward > 0.5 else "failure", **more)


# What becomes a procedure


async def test_a_successful_run_is_a_script_with_its_attributes(bank: Bank, user: str):
    case_id = await finish(bank, user, tool_traces=calls("drain", "restart"), tags=["web", "ops"])
    row = await the_one(bank, user)
    assert (row.kind, row.origin, row.level, row.status, row.version) == ("script", "rules", "hybrid", "active", 1)
    assert (row.task_type, row.domain, row.trigger) == ("restart", "web", TASK)
    assert (row.case_id, row.source_case_ids, row.occurrences) == (case_id, [case_id], 1)
    assert ScriptData.model_validate(row.record).learned_procedure_steps[0].startswith("Call drain with host=")
    assert row.embedding_model == EMBEDDER.model
    assert len(await noted(bank, user, "add_procedure")) == 1


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


class Broken:
    async def abstract(self, run: StoredRun, level: AbstractionLevel) -> Draft | None:
        raise RuntimeError(run.task, level)

    async def revise(self, used: Draft, run: StoredRun, analysis: Analysis) -> Draft | None:
        raise RuntimeError(used, run.task, analysis)


async def test_teachers_that_fail_cost_their_lessons_and_not_the_case(bank: Bank, user: str):
    rules = replace(rule_learners(), abstractor=Broken(), reviser=Broken())
    await finish(bank, user, plan=PLAN, worker={"rules": rules})
    assert len(await bank.ids(user, "ready")) == 1
    assert await stored(bank, user) == []


async def test_a_profile_that_wants_a_language_model_is_taught_by_it_and_others_by_rule(bank: Bank, user: str):
    asked: list[Profile] = []

    def llm(profile: Profile) -> Learners:
        asked.append(profile)
        return replace(rule_learners(), abstractor=Broken())

    await finish(bank, user, plan=PLAN, worker={"llm": llm})
    assert (len(await stored(bank, user)), asked) == (1, [])
    await bank.set_profile(user, analyst="llm")
    await finish(bank, user, "Stop the mail server", plan=PLAN, worker={"llm": llm})
    assert len(await stored(bank, user)) == 1
    assert [(profile.user_sub, profile.agent_key) for profile in asked] == [(user, AGENT)]


async def test_a_trigger_without_words_costs_the_vector_and_not_the_case(bank: Bank, user: str):
    await finish(bank, user, " ", plan=PLAN)
    assert (await the_one(bank, user)).trigger == "a task without words"


# Merging


async def test_near_duplicates_are_one_procedure_that_keeps_all_its_sources(bank: Bank, user: str):
    first = await finish(bank, user, plan=PLAN)
    second = await finish(bank, user, "please Restart the web server", plan=PLAN)
    third = await finish(bank, user, "restart the web server", plan=PLAN, outcome="partial", reward=0.9)
    row = await the_one(bank, user)
    assert (row.case_id, row.source_case_ids, row.occurrences) == (first, [first, second, third], 3)
    assert len(await noted(bank, user, "merge_procedure")) == 2


@pytest.mark.parametrize(
    ("task", "plan"),
    [
        ("Translate the letter", PLAN),
        (TASK, ["restart the unit"]),
        (TASK, ["ask the operator", "wait for an answer", "go home"]),
    ],
    ids=["another trigger", "fewer steps", "other steps"],
)
async def test_procedures_that_differ_stay_apart(task: str, plan: list[str], bank: Bank, user: str):
    await finish(bank, user, plan=PLAN)
    await finish(bank, user, task, plan=plan)
    assert [row.occurrences for row in await stored(bank, user)] == [1, 1]


async def test_without_pgvector_the_same_ones_merge(bank: Bank, user: str):
    for task in (TASK, f"please {TASK}", TASK.lower(), "Translate the letter"):
        await finish(bank, user, task, worker={"pgvector": False}, plan=PLAN)
    assert [row.occurrences for row in await stored(bank, user)] == [3, 1]


async def test_what_was_retired_does_not_come_back_as_a_new_procedure(bank: Bank, user: str):
    await finish(bank, user, plan=PLAN)
    row = await the_one(bank, user)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        assert await pinning.retire(connection, bank.author(user), row.id) == 1
    await finish(bank, user, plan=PLAN)
    row = await the_one(bank, user)
    assert (row.status, row.occurrences) == ("retired", 2)
    assert (await ask(bank, user)).procedures == []


# Reflection


async def test_a_failed_run_that_used_a_procedure_makes_a_new_version_and_the_old_one_stays(bank: Bank, user: str):
    first = await finish(bank, user, tool_traces=calls("drain", "restart"))
    row = await the_one(bank, user)
    traces = calls("drain", "restart", failing="restart")
    second = await finish(
        bank, user, outcome="failure", tool_traces=traces, used_procedure_ids=[str(row.id)], tags=["other"]
    )
    old, new = (each for each in await stored(bank, user) if each.id == row.id)
    assert (old.version, old.status, old.record) == (1, "superseded", row.record)
    assert (new.version, new.status, new.kind, new.parent_version) == (2, "active", "revision", 1)
    assert (new.case_id, new.source_case_ids) == (second, [first, second])
    assert "avoid host=<id>" in new.record["learned_procedure_steps"][1]
    assert (new.trigger, new.level, new.task_type) == (row.trigger, "hybrid", "restart")
    told = [(each.id, each.version) for each in (await ask(bank, user)).procedures if not each.warns]
    assert told == [(row.id, 2)]


async def failing_run(bank: Bank, user: str, procedure_id: UUID, **more: Any) -> None:
    traces = calls("drain", "restart", failing="restart")
    more = {"outcome": "failure", "used_procedure_ids": [str(procedure_id)], **more}
    await finish(bank, user, f"run {uuid4()}", tool_traces=traces, **more)


async def versions(bank: Bank, user: str, procedure_id: UUID) -> list[tuple[int, str]]:
    return [(row.version, row.status) for row in await stored(bank, user) if row.id == procedure_id]


async def test_nothing_is_revised_by_a_success_or_by_a_run_that_used_something_else(bank: Bank, user: str):
    await finish(bank, user, tool_traces=calls("drain", "restart"))
    row = await the_one(bank, user)
    await failing_run(bank, user, row.id, outcome="success")
    await failing_run(bank, user, uuid4())
    await finish(bank, user, "x", outcome="failure", tool_traces=calls("drain", failing="drain"))
    assert await versions(bank, user, row.id) == [(1, "active")]


async def test_a_procedure_of_another_user_is_not_revised(bank: Bank, user: str):
    await finish(bank, user, tool_traces=calls("drain", "restart"))
    row = await the_one(bank, user)
    await failing_run(bank, f"{user}-b", row.id)
    assert await versions(bank, user, row.id) == [(1, "active")]


async def test_a_version_that_was_told_and_replaced_since_is_not_revised_again(bank: Bank, user: str):
    await finish(bank, user, tool_traces=calls("drain", "restart"))
    row = await the_one(bank, user)
    slate = await ask(bank, user)
    await failing_run(bank, user, row.id)
    left_out = {"outcome": "failure", "tool_traces": calls("restart"), "used_procedure_ids": [str(row.id)]}
    await finish(bank, user, "y", **left_out, retrieval_id=slate.retrieval_id)
    assert await versions(bank, user, row.id) == [(1, "superseded"), (2, "active")]
    await finish(bank, user, "z", **left_out)
    assert await versions(bank, user, row.id) == [(1, "superseded"), (2, "superseded"), (3, "active")]


async def test_a_pinned_version_is_not_replaced(bank: Bank, user: str):
    await finish(bank, user, tool_traces=calls("drain", "restart"))
    row = await the_one(bank, user)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await pinning.pin(connection, bank.author(user), row.id, 1, pinned=True)
    await failing_run(bank, user, row.id)
    assert await versions(bank, user, row.id) == [(1, "active")]


# Counters


async def test_uses_are_counted_from_the_log_and_counting_again_changes_nothing(bank: Bank, user: str):
    await finish(bank, user, plan=PLAN)
    await finish(bank, user, "Restart the mail server", plan=["ring the provider"])
    slate = await ask(bank, user)
    first, second = (each.id for each in slate.procedures)

    async def record() -> dict[UUID, tuple[float, float]]:
        return {row.id: (row.uses, row.use_reward) for row in await stored(bank, user)}

    # nobody said which: they share it
    await ended(bank, user, slate, 0.8)
    assert await record() == {key: pytest.approx((0.5, 0.4)) for key in (first, second)}
    # the first alone
    again = await ask(bank, user)
    await ended(bank, user, again, 0.6, [first])
    assert await record() == {first: pytest.approx((1.5, 1.0)), second: pytest.approx((0.5, 0.4))}
    # another reward for the same retrieval takes the place of the one before
    for _ in range(2):
        async with bank.database.as_user(user, datetime.now(UTC)) as connection:
            await give_feedback(connection, user, user, Feedback(0.0, "user", decision_id=again.retrieval_id))
    assert await record() == {first: pytest.approx((1.5, 0.4)), second: pytest.approx((0.5, 0.4))}


@pytest.mark.parametrize(
    ("version", "parent", "worse"),
    [
        ((5, 0), (5, 5), True),
        ((5, 2), (5, 5), True),
        ((5, 3), (5, 5), False),
        ((4, 0), (100, 100), False),
        ((100, 0), (4, 4), False),
        ((100, 50), (100, 51), False),
        ((1000, 500), (1000, 600), True),
        ((5, 5), (5, 0), False),
    ],
)
def test_a_version_is_worse_when_it_was_used_enough_and_is_clearly_so(
    version: tuple[int, int], parent: tuple[int, int], *, worse: bool
):
    assert clearly_worse(Counters(*version), Counters(*parent)) is worse


async def two_versions(bank: Bank, user: str, parent_reward: float) -> UUID:
    """A procedure whose second version superseded a first one that had been used and rewarded five times."""
    await finish(bank, user, tool_traces=calls("drain", "restart"))
    row = await the_one(bank, user)
    for _ in range(5):
        await ended(bank, user, await ask(bank, user), parent_reward)
    await failing_run(bank, user, row.id)
    assert await versions(bank, user, row.id) == [(1, "superseded"), (2, "active")]
    return row.id


async def use(bank: Bank, user: str, procedure_id: UUID, reward: float) -> None:
    slate = await ask(bank, user)
    assert procedure_id in [each.id for each in slate.procedures]
    await ended(bank, user, slate, reward, [procedure_id])


async def test_a_version_that_does_worse_than_its_parent_is_rolled_back(bank: Bank, user: str):
    procedure_id = await two_versions(bank, user, 1.0)
    for _ in range(4):
        await use(bank, user, procedure_id, 0.0)
    assert await versions(bank, user, procedure_id) == [(1, "superseded"), (2, "active")]
    await use(bank, user, procedure_id, 0.0)
    assert await versions(bank, user, procedure_id) == [(1, "active"), (2, "rolled_back")]
    (entry,) = await noted(bank, user, "roll_back_procedure")
    assert entry.payload == {"version": 2, "to": 1}
    # and what failed once as a revision is not made again
    await failing_run(bank, user, procedure_id)
    assert await versions(bank, user, procedure_id) == [(1, "active"), (2, "rolled_back")]


async def test_a_version_that_does_as_well_stays_and_a_pinned_one_stays_whatever_it_does(bank: Bank, user: str):
    procedure_id = await two_versions(bank, user, 1.0)
    for _ in range(5):
        await use(bank, user, procedure_id, 1.0)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await pinning.pin(connection, bank.author(user), procedure_id, 2, pinned=True)
    for _ in range(6):
        await use(bank, user, procedure_id, 0.0)
    assert await versions(bank, user, procedure_id) == [(1, "superseded"), (2, "active")]


# By hand


async def test_a_pin_brings_any_version_back_and_there_is_never_more_than_one_active(bank: Bank, user: str):
    procedure_id = await two_versions(bank, user, 1.0)
    for version in (1, 2, 1):
        async with bank.database.as_user(user, datetime.now(UTC)) as connection:
            await pinning.pin(connection, bank.author(user), procedure_id, version, pinned=True)
        rows = [row for row in await stored(bank, user) if row.id == procedure_id]
        assert [row.version for row in rows if row.status == "active"] == [version]
        assert [row.version for row in rows if row.pinned] == [version]
    assert len(await noted(bank, user, "pin_procedure")) == 3


async def test_what_is_not_there_is_neither_pinned_nor_retired(bank: Bank, user: str):
    await finish(bank, user, plan=PLAN)
    row = await the_one(bank, user)
    thief = bank.author(f"{user}-b")
    attempts = [
        (user, lambda c: pinning.pin(c, bank.author(user), row.id, 2, pinned=True)),
        (user, lambda c: pinning.retire(c, bank.author(user), uuid4())),
        (thief.user_sub, lambda c: pinning.pin(c, thief, row.id, 1, pinned=True)),
        (thief.user_sub, lambda c: pinning.retire(c, thief, row.id)),
    ]
    for name, attempt in attempts:
        with pytest.raises(NotFound):
            async with bank.database.as_user(name, datetime.now(UTC)) as connection:
                await attempt(connection)
    assert (await the_one(bank, user)).status == "active"


# What outlives what


async def test_deleting_a_case_deletes_what_is_made_of_its_words_and_takes_it_off_the_sources(bank: Bank, user: str):
    first = await finish(bank, user, plan=PLAN)
    second = await finish(bank, user, f"please {TASK}", plan=PLAN)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await delete_case(connection, bank.author(user), second)
    assert (await the_one(bank, user)).source_case_ids == [first]
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await delete_case(connection, bank.author(user), first)
    assert await stored(bank, user) == []


async def test_deleting_the_run_behind_a_revision_brings_the_version_before_back(bank: Bank, user: str):
    procedure_id = await two_versions(bank, user, 1.0)
    (revision,) = [row for row in await stored(bank, user) if row.version == 2]
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await delete_case(connection, bank.author(user), revision.case_id)
    assert await versions(bank, user, procedure_id) == [(1, "active")]


async def age(bank: Bank, user: str, days: int) -> None:
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        long_ago = datetime.now(UTC) - timedelta(days=days)
        await connection.execute(update(cases).where(cases.c.user_sub == user).values(created_at=long_ago))


async def test_a_procedure_outlives_the_case_that_the_window_crowds_out(bank: Bank, user: str):
    await finish(bank, user, plan=PLAN)
    await age(bank, user, 5)
    await bank.add(user, {"task": "another"})
    await bank.set_profile(user, window_size=1)
    now = datetime.now(UTC)
    await prune(bank.database, bank.profile(user), now=now)
    assert (await the_one(bank, user)).case_id is not None
    await prune(bank.database, bank.profile(user), now=now + 40 * DAY)
    row = await the_one(bank, user)
    assert (row.status, row.case_id, row.source_case_ids) == ("active", None, [])
    assert [each.id for each in (await ask(bank, user)).procedures] == [row.id]


async def test_a_procedure_leaves_with_the_case_that_expires(bank: Bank, user: str):
    await finish(bank, user, plan=PLAN)
    await age(bank, user, 5)
    await bank.set_profile(user, ttl_days=3)
    await prune(bank.database, bank.profile(user), now=datetime.now(UTC))
    assert await stored(bank, user) == []


async def test_a_procedure_that_outlived_its_case_expires_when_nobody_uses_it(bank: Bank, user: str):
    for task in (TASK, "Translate the letter", "Bake a cake"):
        await finish(bank, user, task, plan=[f"{task} well"])
    now = datetime.now(UTC)
    used, pinned, _ = await stored(bank, user)
    async with bank.database.as_user(user, now) as connection:
        mine = update(procedures).where(procedures.c.user_sub == user)
        await connection.execute(mine.values(case_id=None, created_at=now - 5 * DAY))
        await connection.execute(mine.where(procedures.c.id == used.id).values(last_used_at=now))
        await pinning.pin(connection, bank.author(user), pinned.id, 1, pinned=True)
    assert (await prune(bank.database, bank.profile(user), now=now)).procedures == 0
    await bank.set_profile(user, ttl_days=3)
    assert (await prune(bank.database, bank.profile(user), now=now)).procedures == 1
    assert [row.id for row in await stored(bank, user)] == [used.id, pinned.id]


class Renamed(WordLlamaEmbedder):
    """The same vectors under another name, and so of another space."""

    model = "another space"


async def test_reembedding_brings_triggers_along(bank: Bank, user: str):
    procedure_id = await two_versions(bank, user, 1.0)
    await reembed(bank.database, Renamed(), bank.profile(user), batch=2)
    assert {row.embedding_model for row in await stored(bank, user)} == {"another space"}
    reader = Reader(bank.database, Renamed())
    slate = await reader.retrieve(user, datetime.now(UTC), Question(Search(AGENT, TASK)))
    assert [each.similarity for each in slate.procedures if each.id == procedure_id] == [pytest.approx(1, abs=1e-3)]


async def test_a_procedure_that_lies_in_another_space_is_found_by_its_words(bank: Bank, user: str):
    await finish(bank, user, plan=PLAN)
    reader = Reader(bank.database, Renamed())
    slate = await reader.retrieve(user, datetime.now(UTC), Question(Search(AGENT, "restart a web server")))
    assert [each.similarity for each in slate.procedures] == [None]


async def test_a_profile_keeps_so_many_procedures_and_the_least_worth_go(bank: Bank, user: str):
    for task in (TASK, "Translate the letter", "Water the garden", "Tune the piano", "Bake a cake"):
        await finish(bank, user, task, plan=[f"{task} well"])
    pinned, useful, *_ = await stored(bank, user)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await pinning.pin(connection, bank.author(user), pinned.id, 1, pinned=True)
        await connection.execute(update(procedures).where(procedures.c.id == useful.id).values(uses=4, use_reward=4))
    pruned = [await prune(bank.database, bank.profile(user), now=datetime.now(UTC), procedures_kept=3) for _ in "ab"]
    assert [each.procedures for each in pruned] == [2, 0]
    assert [row.trigger for row in await stored(bank, user)] == [TASK, "Translate the letter", "Bake a cake"]
    assert len(await noted(bank, user, "prune_procedure")) == 2
