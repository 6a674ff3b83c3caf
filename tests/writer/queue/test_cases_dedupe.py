"""Repeats: runs that did the same for the same task are one case that counts them."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from statistics import mean
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select, update

from policy.features import column
from retrieval.ranking.pool import pool_of
from retrieval.search.bank import newest_run
from retrieval.search.candidates import CaseSearch, candidates
from retrieval.tables.cases import cases
from retrieval.tables.kinds import RewardSource
from tests.fakes.openai_server import Fault, OpenAIServer
from tests.writer.conftest import (
    AGENT,
    DIMENSION,
    PACE,
    Bank,
    MakeWorker,
    drain,
    keep,
    states,
)
from tests.writer.runs import call
from writer.queue.case import ClaimedCase
from writer.queue.cases import count_again
from writer.replays.profile_replay import _newest, history_of
from writer.rewards.feedback import Feedback, give_feedback


def repeat(reward: float | None, source: RewardSource | None) -> ClaimedCase:
    """A run like the one before it, with this reward."""
    return ClaimedCase(
        id=uuid4(),
        agent_key="agent",
        kind="task",
        task="water the garden",
        plan=[],
        words=None,
        effects=[],
        moves=[],
        tags=[],
        outcome="success",
        reward=reward,
        reward_source=source,
        error_count=0,
        message_hash=b"",
        retrieval_id=None,
        used_case_ids=None,
        used_procedure_ids=None,
        payload=b"",
        source="ada",
        session_id=None,
        created_at=datetime.now(UTC),
        key_id=uuid4(),
        analyst="rules",
        abstraction="hybrid",
        least_success=0.7,
        embedding_model=None,
    )


async def test_twenty_equal_retains_without_a_key_become_one_ready_case_that_counts_them(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    ids = await asyncio.gather(*(keep(bank, user) for _ in range(20)))
    assert len(set(ids)) == 20
    await asyncio.gather(*(drain(worker_on(server, replace(PACE, batch=3))) for _ in range(4)))
    rows = await states(bank, user)
    (kept,) = [row for row in rows if row.status == "ready"]
    assert kept.occurrences == 20
    assert {(row.status, row.merged_into) for row in rows if row is not kept} == {("merged", kept.id)}
    assert len(rows) == 20
    assert (await bank.counts(user))["case_embeddings"] == 1


async def test_equal_runs_of_two_users_are_not_merged(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    await keep(bank, user)
    await keep(bank, f"{user}-b")
    await drain(worker_on(server))
    assert [row.status for name in (user, f"{user}-b") for row in await states(bank, name)] == ["ready", "ready"]


async def test_runs_that_differ_in_outcome_plan_kind_or_agent_are_not_merged(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    for difference in ({}, {"outcome": "failure"}, {"plan": ["turn the tap"]}, {"kind": "tool"}, {"agent": "other"}):
        await keep(bank, user, **difference)
    await drain(worker_on(server))
    assert {(row.status, row.occurrences) for row in await states(bank, user)} == {("ready", 1)}


async def test_the_same_words_in_another_case_and_spacing_are_the_same_run(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    await keep(bank, user, "water the garden", plan=["turn the tap"])
    await keep(bank, user, " Water  the\nGARDEN ", plan=["Turn the  tap"])
    await drain(worker_on(server))
    assert [(row.status, row.occurrences) for row in await states(bank, user)] == [("ready", 2), ("merged", 1)]


async def test_a_plan_that_works_again_is_newer_than_one_that_worked_once_since_in_searches_and_replays(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    for tool in ("can", "hose", "can"):
        await keep(bank, user, plan=[f"take the {tool}"], tool_traces=[call(tool, {"litres": 2})])
        await drain(worker_on(server))
    first, other, repeat_of_first = await states(bank, user)
    assert repeat_of_first.merged_into == first.id
    newest = {first.id: repeat_of_first.created_at, other.id: other.created_at}
    async with bank.database.fast(user, datetime.now(UTC)) as connection:
        rows = await connection.all(*candidates(CaseSearch(AGENT, "water the garden")))
    found = [row for row in rows if row.id]
    assert {row.id: row.newest_run for row in found} == newest
    (place,) = np.flatnonzero(column(pool_of(found, first.terms, None).features, "order") == 0)
    assert found[place].id == first.id
    history = history_of((await bank.read(user, _newest(bank.profile(user))))[::-1])
    assert history.times.tolist() == [each.created_at.timestamp() for each in (first, other)]
    assert history.newest.tolist() == [newest[each.id].timestamp() for each in (first, other)]


async def test_a_repeat_that_was_retained_for_an_earlier_time_makes_a_case_no_older(bank: Bank, user: str):
    (kept,) = await bank.add(user, {})
    early, late = (datetime.now(UTC) + timedelta(days=days) for days in (-9, 9))
    seen = []
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        for at in (early, late, early):
            await connection.execute(count_again(user, kept, replace(repeat(None, None), created_at=at)))
            seen.append((await connection.execute(select(newest_run(), cases.c.created_at))).one())
    assert [each[0] for each in seen] == [seen[0].created_at, late, late]


OTHER_TASKS = [
    ("Transfer 500 EUR from Anna to Ben", "Transfer 500 EUR from Ben to Anna"),
    ("Refund order 20513", "Refund order 20531"),
    ("Book the meeting room for 12 March", "Book the meeting room for 21 March"),
    ("Flash firmware 1.23.4", "Flash firmware 4.23.1"),
    ("Flash firmware 1.23", "Flash firmware 12.3"),
    ("Convert the price from dollars to euros", "Convert the price from euros to dollars"),
    ("Set the thermostat to 5", "Set the thermostat to -5"),
    ("Charge 20 €", "Charge 20 $"),
    ("List rows with a < b", "List rows with a > b"),
    ("Mark the ticket 👍", "Mark the ticket 👎"),
    ("Print 10² labels", "Print 102 labels"),
    ("Enable the alarm", "Do not enable the alarm"),
    ("从北京飞到上海的机票", "从上海飞到北京的机票"),
    ("東京から大阪への切符", "大阪から東京への切符"),
    ("ตั๋วจากกรุงเทพไปเชียงใหม่", "ตั๋วจากเชียงใหม่ไปกรุงเทพ"),
    ("تحويل ٥٠٠ من أحمد إلى سارة", "تحويل ٥٠٠ من سارة إلى أحمد"),  # noqa: RUF001
    ("Überweise 500 Euro von Anna an Ben", "Überweise 500 Euro von Ben an Anna"),
    ("Перевести 500 рублей от Анны Борису", "Перевести 500 рублей от Бориса Анне"),
]


class OneVector(OpenAIServer):
    """Answers every text with the same vector."""

    def _embeddings(self, payload: dict[str, Any], fault: Fault | None) -> Any:
        return super()._embeddings({**payload, "input": ["the same"] * len(payload["input"])}, fault)


@pytest.fixture(scope="module")
def one_vector() -> Iterator[OpenAIServer]:
    with OneVector(DIMENSION) as server:
        yield server


@pytest.mark.parametrize("pair", OTHER_TASKS)
async def test_tasks_with_other_numbers_words_or_order_are_not_merged_though_their_vectors_are_equal(
    bank: Bank, one_vector: OpenAIServer, worker_on: MakeWorker, user: str, pair: tuple[str, str]
):
    for each in pair:
        await keep(bank, user, each, plan=["look it up", "do it"])
    await drain(worker_on(one_vector))
    assert [(row.status, row.occurrences) for row in await states(bank, user)] == [("ready", 1), ("ready", 1)]


WIDE = "Refund order 20513".translate({code: code + 0xFEE0 for code in range(0x21, 0x7F)})
FORMS = [
    ("Refund order 20513", "  refund\torder 20513."),
    ("Öffne die Tür", "O\u0308ffne die Tu\u0308r"),
    ("Refund order 20513", WIDE.replace(" ", "\u3000")),
    ("从北京飞到上海的机票", "从北京飞到上海的机票。"),
    ("Straße räumen", "STRASSE RÄUMEN"),
]


@pytest.mark.parametrize("forms", FORMS)
async def test_forms_of_the_same_words_are_one_task(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str, forms: tuple[str, str]
):
    for each in forms:
        await keep(bank, user, each, plan=["look it up", "do it"])
    await drain(worker_on(server))
    assert [(row.status, row.occurrences) for row in await states(bank, user)] == [("ready", 2), ("merged", 1)]


# The reward of a case that counts several runs


async def test_trusted_rewards_are_not_diluted_by_the_guesses_before_them(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    judged = [{"reward": reward, "reward_source": "metric"} for reward in (0.0, 1.0)]
    for more in ({}, {}, {}, *judged):
        await keep(bank, user, **more)
        await drain(worker_on(server))
    kept = (await states(bank, user))[0]
    assert (kept.occurrences, kept.reward, kept.reward_source) == (5, 0.5, "metric")


given_rewards = st.tuples(
    st.sampled_from(["heuristic", "user", "judge", "metric"]), st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
)


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=given_rewards, later=st.lists(given_rewards, max_size=6))
async def test_the_reward_is_the_mean_of_the_trusted_ones_or_else_of_the_guesses(
    bank: Bank, first: tuple[RewardSource, float], later: list[tuple[RewardSource, float]]
):
    user = f"user-{uuid4()}"
    (kept,) = await bank.add(user, {"reward_source": first[0], "reward": first[1]})
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        for source, reward in later:
            await connection.execute(count_again(user, kept, repeat(reward, source)))
    runs = [first, *later]
    trusted = [reward for source, reward in runs if source != "heuristic"]
    (row,) = await states(bank, user)
    assert row.occurrences == len(runs)
    assert row.reward == pytest.approx(mean(trusted or [reward for _, reward in runs]), abs=1e-5)
    assert (row.reward_source != "heuristic") == bool(trusted)


async def test_a_repeat_without_a_reward_leaves_the_one_there_is(bank: Bank, user: str):
    (kept,) = await bank.add(user, {"reward": 0.25})
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await connection.execute(count_again(user, kept, repeat(None, None)))
    (row,) = await states(bank, user)
    assert (row.occurrences, row.reward, row.reward_source) == (2, 0.25, "metric")


async def test_feedback_on_the_kept_case_takes_the_place_of_its_own_runs_reward_alone(bank: Bank, user: str):
    (kept,) = await bank.add(user, {"reward": 1.0})
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        for _ in range(2):
            await connection.execute(count_again(user, kept, repeat(1.0, "metric")))
        await give_feedback(connection, user, "test", Feedback(0.75, "user", case_id=kept))
        await give_feedback(connection, user, "test", Feedback(0.0, "user", case_id=kept))
        await connection.execute(count_again(user, kept, repeat(1.0, "metric")))
    (row,) = await states(bank, user)
    assert (row.reward, row.reward_source) == (0.75, "user")


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    runs=st.lists(
        st.sampled_from([(1.0, "metric"), (0.25, "metric"), (1.0, "heuristic"), (None, None)]), min_size=3, max_size=3
    ),
    judged=st.permutations([(0, 0.0), (1, 1.0), (1, 0.5), (2, 0.25), (None, None)]),
)
async def test_the_reward_is_the_mean_of_the_newest_trusted_ones_of_all_runs_in_whatever_order_they_came(
    bank: Bank,
    runs: list[tuple[float | None, RewardSource | None]],
    judged: list[tuple[int | None, float | None]],
):
    user = f"user-{uuid4()}"
    ids = await bank.add(user, *({"reward": reward, "reward_source": source} for reward, source in runs))
    own = {number: reward for number, (reward, source) in enumerate(runs) if source == "metric"}
    merged = update(cases).where(cases.c.user_sub == user, cases.c.id.in_(ids[1:]))
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        for number, reward in judged:
            if number is not None:
                own[number] = reward
                await give_feedback(connection, user, "test", Feedback(reward, "user", case_id=ids[number]))
                continue
            rows = select(cases.c.reward, cases.c.reward_source).where(merged.whereclause).order_by(cases.c.id)
            for row in (await connection.execute(rows)).all():
                await connection.execute(count_again(user, ids[0], repeat(row.reward, row.reward_source)))
            await connection.execute(merged.values(status="merged", merged_into=ids[0]))
    row = (await states(bank, user))[0]
    assert row.occurrences == 3
    assert row.reward == pytest.approx(mean(own.values()), abs=1e-5)
    assert row.reward_source != "heuristic"


async def test_a_guess_given_as_feedback_does_not_undo_what_trusted_repeats_added(bank: Bank, user: str):
    (kept,) = await bank.add(user, {"reward": 1.0})
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await give_feedback(connection, user, "test", Feedback(1.0, "user", case_id=kept))
        await connection.execute(count_again(user, kept, repeat(0.0, "metric")))
        counts = await give_feedback(connection, user, "test", Feedback(0.0, "heuristic", case_id=kept))
    (row,) = await states(bank, user)
    assert (counts.reward, row.reward, row.reward_source) == (0.5, 0.5, "user")
