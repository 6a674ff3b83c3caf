"""The replay of a profile on a real bank: when it is due, what it reads, and what it stores."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from sqlalchemy import delete, insert, select, update

from policy.features import column
from policy.fit import fit_of
from policy.history import UNPROVEN_TRUST, History, trust_of
from policy.orders import ORDERS, mixture
from policy.replay import CHOICE, Tally, comparison_of, replay
from policy.weights import pack_fit, unpack_fit
from retrieval.ranking.pool import pool_of
from retrieval.search.bank import failed
from retrieval.search.candidates import CaseSearch, candidates
from retrieval.tables.cases import case_embeddings, cases
from retrieval.tables.kinds import has_failed
from retrieval.tables.profiles import profiles, replays
from tests.fakes.openai_server import OpenAIServer
from tests.policy.banks import moves, shop, terms
from tests.writer.conftest import AGENT, DIMENSION, Bank, MakeWorker, drain, keep
from tests.writer.runs import call
from tests.writer.trainings import never
from tests.writer.upkeep.test_reembed import Space
from writer.profiles import Profile
from writer.replays import profile_replay as module
from writer.replays.profile_replay import NEWEST, SPOKEN, StoredReplay, history_of, replay_if_due
from writer.rights.erase import erase
from writer.training.candidates import Recipe
from writer.training.nightly import learn
from writer.upkeep.reembed import reembed

START = datetime(2026, 1, 1, tzinfo=UTC)


def runs(count: int, seed: int = 0, first: int = 0, **more: Any) -> list[dict[str, Any]]:
    """Returns proven successes of a shop, an hour apart, the ``first`` hours after START."""
    return [
        {
            "task": task,
            "terms": terms(task).tolist(),
            "moves": moves(plan).tolist(),
            "created_at": START + timedelta(hours=first + number),
            "proven": True,
            **more,
        }
        for number, (task, plan) in enumerate(shop(count, seed))
    ]


async def stored(bank: Bank, user: str) -> list[Any]:
    return await bank.read(user, select(replays).where(replays.c.user_sub == user))


async def read(bank: Bank, user: str) -> History:
    rows = await bank.read(user, module._newest(bank.profile(user)))  # noqa: SLF001 - the rows of a replay
    return history_of(rows[::-1])


async def due(bank: Bank, user: str, *, at_night: bool = False) -> bool:
    return await replay_if_due(bank.database, bank.profile(user), at_night=at_night) is not None


# Through the worker


async def test_retained_runs_are_replayed_by_the_worker_that_works_them_off(
    bank: Bank, user: str, server: OpenAIServer, worker_on: MakeWorker
):
    worker = worker_on(server)
    for task, plan in shop(12):
        steps = [call(tool, {"id": f"F{number}"}) for number, tool in enumerate(plan.split())]
        await keep(bank, user, task, tool_traces=steps, reward=1.0, reward_source="metric")
        await drain(worker)
    (row,) = await stored(bank, user)
    assert (row.agent_key, row.runs) == (AGENT, 12)
    assert row.questions > 0
    assert set(row.tallies) == {*ORDERS, CHOICE}
    assert unpack_fit(row.fit).order == row.serves
    assert len(unpack_fit(row.fit).moves.moves) > 0
    found = await read(bank, user)
    assert found.vectors.shape == (12, DIMENSION)
    assert np.linalg.norm(found.vectors, axis=1) == pytest.approx(np.ones(12), abs=1e-3)
    assert all(len(each) for each in (*found.terms, *found.moves))


async def test_the_worker_looks_at_the_queues_again_after_each_replay(
    bank: Bank, user: str, server: OpenAIServer, worker_on: MakeWorker
):
    users = [f"{user}-{name}" for name in "abc"]
    for each in users:
        await keep(bank, each)
    worker, numbers, works = worker_on(server), [0], True
    while works:
        works = await worker.run_once() > 0
        numbers.append(sum([len(await stored(bank, each)) for each in users]))
    assert numbers[-1] == len(users)
    assert {after - before for before, after in pairwise(numbers)} == {0, 1}


async def test_before_its_runs_tell_more_a_profile_is_served_by_the_first_order(
    bank: Bank, user: str, server: OpenAIServer, worker_on: MakeWorker
):
    worker = worker_on(server)
    worker.cases.first_order = "words"
    await keep(bank, user)
    await drain(worker)
    assert [row.serves for row in await stored(bank, user)] == ["words"]


async def test_before_its_runs_tell_more_the_night_leaves_a_profile_with_the_first_order(bank: Bank, user: str):
    await bank.add(user, *runs(1))
    recipe = Recipe(never, first_order="rare")
    assert [each.outcome async for each in learn(bank.database, recipe, bank.profile(user))]
    assert [row.serves for row in await stored(bank, user)] == ["rare"]


# When a profile is due


async def test_a_replay_is_renewed_when_a_twentieth_is_new_and_not_before(bank: Bank, user: str):
    await bank.add(user, *runs(60))
    assert await due(bank, user)
    (first,) = await stored(bank, user)
    assert (first.runs, first.newest) == (60, START + timedelta(hours=59))
    assert not await due(bank, user)
    await bank.add(user, *runs(2, seed=1, first=60))
    assert not await due(bank, user)
    assert await stored(bank, user) == [first]
    await bank.add(user, *runs(1, seed=2, first=62))
    assert await due(bank, user)
    (second,) = await stored(bank, user)
    assert (second.runs, second.newest) == (63, START + timedelta(hours=62))
    assert second.created_at > first.created_at


async def test_at_night_one_new_case_is_enough(bank: Bank, user: str):
    await bank.add(user, *runs(60))
    assert await due(bank, user)
    assert not await due(bank, user, at_night=True)
    await bank.add(user, *runs(1, first=60))
    assert not await due(bank, user)
    assert await due(bank, user, at_night=True)


async def test_at_night_what_users_said_of_old_runs_since_is_learned(bank: Bank, user: str):
    await bank.add(user, *runs(20, proven=False))
    assert await due(bank, user)
    assert not unpack_fit((await stored(bank, user))[0].fit).mostly_proven
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await connection.execute(update(cases).where(cases.c.user_sub == user).values(proven=True))
    assert not await due(bank, user)
    assert await due(bank, user, at_night=True)
    assert unpack_fit((await stored(bank, user))[0].fit).mostly_proven
    assert not await due(bank, user, at_night=True)


async def test_the_night_after_its_cases_got_new_vectors_a_profile_is_replayed_by_them(bank: Bank, user: str):
    await bank.add(user, *runs(20))
    assert await due(bank, user)
    assert await reembed(bank.database, Space("new"), bank.profile(user)) == 20
    assert not await due(bank, user)
    assert await due(bank, user, at_night=True)
    assert not await due(bank, user, at_night=True)


@pytest.mark.parametrize("unread", [{"fit": b"of another version"}, {"tallies": {}}])
async def test_the_night_replays_anew_what_another_version_stored(unread: dict[str, Any], bank: Bank, user: str):
    await bank.add(user, *runs(20))
    assert await due(bank, user)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await connection.execute(update(replays).where(replays.c.user_sub == user).values(unread))
    assert not await due(bank, user)
    assert await due(bank, user, at_night=True)
    (row,) = await stored(bank, user)
    assert (unpack_fit(row.fit).order, set(row.tallies)) == (row.serves, {*ORDERS, CHOICE})


async def test_a_replay_that_read_earlier_does_not_replace_a_later_one(bank: Bank, user: str):
    await bank.add(user, *runs(10))
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        rows = (await connection.execute(module._newest(bank.profile(user)))).all()[::-1]  # noqa: SLF001
        found = replay(history_of(rows))
        for read_at in (START + timedelta(hours=2), START + timedelta(hours=1)):
            await module._store(connection, bank.profile(user), found, rows, read_at)  # noqa: SLF001
    assert [row.created_at for row in await stored(bank, user)] == [START + timedelta(hours=2)]


@pytest.mark.parametrize(
    "cases_of_it",
    [[], runs(3, status="pending"), runs(3, status="merged"), runs(3, outcome="aborted")],
    ids=["no case", "all pending", "all merged", "all aborted"],
)
async def test_a_profile_without_a_case_to_read_is_not_due(cases_of_it: list[dict[str, Any]], bank: Bank, user: str):
    await bank.add(user, *cases_of_it)
    assert not await due(bank, user)
    assert not await due(bank, user, at_night=True)
    assert await stored(bank, user) == []


async def test_the_newest_cases_are_read_the_oldest_first(bank: Bank, user: str):
    await bank.add(user, *reversed(runs(NEWEST + 5)))
    assert await due(bank, user)
    (row,) = await stored(bank, user)
    assert row.runs == NEWEST
    times = unpack_fit(row.fit).times
    assert times[[0, -1]].tolist() == [(START + timedelta(hours=hour)).timestamp() for hour in (5, NEWEST + 4)]
    assert (np.diff(times) > 0).all()


async def test_another_agents_cases_are_not_read(bank: Bank, user: str):
    await bank.add(user, *runs(10))
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await connection.execute(insert(profiles).values(user_sub=user, agent_key="second"))
    await bank.add(user, *runs(5, seed=1, agent_key="second"))
    assert await due(bank, user)
    assert await replay_if_due(bank.database, Profile(user, "second", datetime.now(UTC))) is not None
    assert {row.agent_key: row.runs for row in await stored(bank, user)} == {AGENT: 10, "second": 5}


async def test_two_replays_at_once_leave_one_row(bank: Bank, user: str):
    await bank.add(user, *runs(30))
    await asyncio.gather(*(due(bank, user) for _ in range(3)))
    (row,) = await stored(bank, user)
    assert row.runs == 30


# What counts, and how much


async def test_a_repeated_task_counts_once_a_day(bank: Bank, user: str):
    await bank.add(user, *({**each, "terms": terms("the same task").tolist()} for each in runs(48)))
    found = await read(bank, user)
    assert np.flatnonzero(found.weight).tolist() == [0, 24]  # 48 hours
    assert found.trust.tolist() == [1.0] * 48


async def test_words_in_another_order_are_the_same_task(bank: Bank, user: str):
    first, second = runs(2)
    await bank.add(
        user,
        first | {"terms": terms("refund the lamp").tolist()},
        second | {"terms": terms("the lamp refund").tolist()},
    )
    assert (await read(bank, user)).weight.tolist() == [1, 0]


async def test_a_failed_try_does_not_take_the_turn_of_the_run_that_went_well(bank: Bank, user: str):
    failed, well = runs(2)
    await bank.add(user, failed | {"outcome": "failure", "reward": 0.0}, well | {"terms": failed["terms"]})
    found = await read(bank, user)
    assert found.went_well.tolist() == [False, True]
    assert found.weight[1] == 1


async def test_of_a_days_runs_of_a_task_a_proven_one_counts_whoever_came_first(bank: Bank, user: str):
    planted, proven = runs(2)
    await bank.add(user, planted | {"proven": False}, proven | {"terms": planted["terms"]})
    assert (await read(bank, user)).weight.tolist() == [0, 1]


async def test_unproven_runs_weigh_a_quarter(bank: Bank, user: str):
    whole = runs(4)
    whole[1]["proven"] = whole[3]["proven"] = False
    await bank.add(user, *(each | {"terms": [number]} for number, each in enumerate(whole)))
    found = await read(bank, user)
    assert UNPROVEN_TRUST == 0.25
    assert found.weight.tolist() == found.trust.tolist() == [1, 0.25, 1, 0.25]


async def test_unproven_runs_of_repeated_tasks_do_not_outvote_proven_ones(bank: Bank, user: str):
    planted = [each | {"proven": False, "moves": moves("find refund reason=broken").tolist()} for each in runs(40, 3)]
    for each in planted:
        each["terms"] = terms("anna writes about the lamp that is broken").tolist()
    await bank.add(user, *planted)
    assert (await read(bank, user)).weight.sum() == pytest.approx(2 * UNPROVEN_TRUST)  # in 40 hours


@pytest.mark.parametrize(
    ("outcome", "reward", "source", "expected"),
    [
        ("success", None, None, True),
        ("success", 1.0, "metric", True),
        ("success", 0.5, "heuristic", True),
        ("success", 0.25, "heuristic", True),
        ("partial", 0.25, "heuristic", False),
        ("success", 0.0, "user", False),
        ("failure", None, None, False),
        ("failure", 1.0, "user", True),
        ("partial", None, None, False),
        ("unknown", None, None, False),
        ("unknown", 0.9, "judge", True),
    ],
)
async def test_a_run_went_well_if_others_say_so_or_else_if_it_does(  # noqa: PLR0913
    outcome: str, reward: float | None, source: str | None, *, expected: bool, bank: Bank, user: str
):
    (run,) = runs(1)
    await bank.add(user, run | {"outcome": outcome, "reward": reward, "reward_source": source})
    assert (await read(bank, user)).went_well.tolist() == [expected]


async def test_a_search_and_a_replay_agree_which_runs_failed(bank: Bank, user: str):
    (run,) = runs(1)
    fates = [
        {"outcome": outcome, "reward": reward, "reward_source": source if reward is not None else None}
        for outcome in ("success", "failure", "partial", "aborted", "unknown")
        for reward in (None, 0.0, 0.4, 0.5, 1.0)
        for source in ("heuristic", "user", "judge", "metric")
    ]
    await bank.add(user, *(run | fate for fate in fates))
    told = (cases.c.outcome, cases.c.reward, cases.c.reward_source)
    found = await bank.read(user, select(failed().label("failed"), *told).where(cases.c.user_sub == user))
    assert len(found) == len(fates)
    for row in found:
        assert row.failed == has_failed(row.outcome, row.reward, row.reward_source), row


async def test_a_search_and_a_replay_trust_a_run_the_same_whatever_its_fate(bank: Bank, user: str):
    fates = [
        {"outcome": outcome, "reward": reward, "reward_source": source, "proven": proven}
        for outcome in ("success", "failure")
        for reward, source in ((None, None), (0.0, "user"), (1.0, "user"))
        for proven in (True, False)
    ]
    await bank.add(user, *(run | fate for run, fate in zip(runs(len(fates)), fates, strict=True)))
    async with bank.database.fast(user, datetime.now(UTC)) as connection:
        rows = await connection.all(*candidates(CaseSearch(AGENT, "anna writes about the lamp")))
    served = {row.id: (bool(row.failed), float(trust_of(np.array(row.proven)))) for row in rows if row.id}
    history = await read(bank, user)
    ids = await bank.read(user, select(cases.c.id).where(cases.c.user_sub == user).order_by(cases.c.created_at))
    assert len(ids) == len(fates)
    for (case_id,), failed_, trust in zip(ids, history.failed.tolist(), history.trust.tolist(), strict=True):
        assert served[case_id] == (failed_, trust)


async def test_plans_that_failed_and_were_judged_lose_their_place_in_serving_as_in_replay(bank: Bank, user: str):
    same = {"task": "cancel the order", "terms": terms("cancel the order").tolist(), "moves": moves("cancel").tolist()}
    several = runs(7, **same)
    several[4]["moves"] = moves("return").tolist()
    several = several[:5] + [each | {"outcome": "failure", "reward": 0.0} for each in several[5:]]
    await bank.add(user, *several)
    async with bank.database.fast(user, datetime.now(UTC)) as connection:
        rows = [row for row in await connection.all(*candidates(CaseSearch(AGENT, same["task"]))) if row.id]
    fit = fit_of(await read(bank, user), "outcomes")
    pool = pool_of(rows, same["terms"], fit)
    (first,) = np.flatnonzero(column(pool.features, "order") == 0)
    assert rows[first].created_at == several[4]["created_at"]
    await bank.add(user, *runs(1, first=7, **same))
    comparison = comparison_of(await read(bank, user))
    scores = ORDERS["outcomes"](comparison, mixture(comparison, fit.weights))[-1, :5]
    assert int(scores.argmax()) == 4


async def test_a_bank_without_a_success_has_a_replay_without_a_question(bank: Bank, user: str):
    await bank.add(user, *runs(12, outcome="failure", reward=0.0))
    assert await due(bank, user)
    (row,) = await stored(bank, user)
    assert (row.runs, row.questions, row.serves) == (12, 0, "vote")


# Vectors


async def test_a_case_without_a_vector_of_the_profiles_model_has_zeros(bank: Bank, user: str):
    ids = await bank.add(user, *runs(3))
    await bank.set_profile(user, embedding_model="m")
    for case_id, model, vector in ((ids[0], "m", [0.0, 1.0]), (ids[1], "old", [1.0, 0.0, 0.0])):
        row = {"user_sub": user, "agent_key": AGENT, "case_id": case_id, "model": model, "embedding": vector}
        row["dimension"] = len(vector)
        async with bank.database.as_user(user, datetime.now(UTC)) as connection:
            await connection.execute(insert(case_embeddings).values(row))
    assert (await read(bank, user)).vectors.tolist() == [[0, 1], [0, 0], [0, 0]]


# Bad input


async def test_an_erased_user_is_left_alone(bank: Bank, user: str):
    await bank.add(user, *runs(20))
    profile = bank.profile(user)
    assert await due(bank, user)
    await erase(bank.database, user)
    assert await replay_if_due(bank.database, profile, at_night=True) is None
    assert set((await bank.counts(user)).values()) == {0}


async def test_a_user_who_is_erased_during_the_replay_is_not_brought_back(bank: Bank, user: str):
    await bank.add(user, *runs(NEWEST))
    replaying = asyncio.create_task(replay_if_due(bank.database, bank.profile(user)))
    while not replaying.done():
        await asyncio.sleep(0.02)
        await erase(bank.database, user)
    assert await replaying is None
    assert set((await bank.counts(user)).values()) == {0}


@pytest.mark.parametrize("is_deleted", [True, False], ids=["deleted", "out of the searches"])
async def test_a_case_pruned_between_replay_and_night_is_gone_after_the_night(
    *, is_deleted: bool, bank: Bank, user: str
):
    ids = await bank.add(user, *runs(30))
    assert await due(bank, user)
    (before,) = await stored(bank, user)
    mine = cases.c.user_sub == user, cases.c.id.in_(ids[:10])
    statement = delete(cases) if is_deleted else update(cases).values(status="pruned")
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await connection.execute(statement.where(*mine))
    assert not await due(bank, user)
    assert await stored(bank, user) == [before]
    assert unpack_fit(before.fit).runs == 30
    assert await due(bank, user, at_night=True)
    (after,) = await stored(bank, user)
    assert (after.runs, unpack_fit(after.fit).runs) == (20, 20)
    assert not await due(bank, user, at_night=True)


@pytest.mark.parametrize("is_deleted", [True, False], ids=["deleted", "out of the searches"])
async def test_the_night_after_its_last_case_forgets_what_a_profiles_words_told(
    *, is_deleted: bool, bank: Bank, user: str
):
    await bank.add(user, *runs(10))
    assert await due(bank, user)
    statement = delete(cases) if is_deleted else update(cases).values(status="pruned")
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await connection.execute(statement.where(cases.c.user_sub == user))
    assert not await due(bank, user, at_night=True)
    assert await stored(bank, user) == []


async def test_when_the_clock_went_back_runs_are_replayed_by_their_times_at_night(bank: Bank, user: str):
    await bank.add(user, *runs(20, first=1_000))
    assert await due(bank, user)
    await bank.add(user, *runs(20, seed=1))  # by a clock that is a thousand hours behind
    assert not await due(bank, user)
    assert await due(bank, user, at_night=True)
    (row,) = await stored(bank, user)
    assert row.runs == 40
    assert (np.diff(unpack_fit(row.fit).times) > 0).all()


async def test_the_same_cases_give_the_same_bytes(bank: Bank, user: str):
    await bank.add(user, *runs(40))
    assert await due(bank, user)
    (row,) = await stored(bank, user)
    assert row.fit == pack_fit(replay(await read(bank, user)).fit)


def tasks(several: Sequence[np.ndarray]) -> list[list[int]]:
    return [each.tolist() for each in several]


async def test_what_is_read_is_what_was_stored(bank: Bank, user: str):
    rows = runs(15)
    await bank.add(user, *rows)
    found = await read(bank, user)
    assert tasks(found.terms) == [row["terms"] for row in rows]
    assert tasks(found.moves) == [row["moves"] for row in rows]
    assert found.times.tolist() == [row["created_at"].timestamp() for row in rows]
    assert found.vectors.shape == (15, 0)


@pytest.mark.parametrize(("questions", "runs"), [(1, "run"), (12, "12 runs")])
def test_the_sentence_of_a_replay_counts_its_runs_and_names_the_order_that_serves(questions: int, runs: str):
    tallies = {name: Tally(0.5, 0.5, 0, low=0.25, high=0.75) for name in SPOKEN}
    result = StoredReplay(20, questions, "vote", tallies, fit_of(history_of([])), START)
    begins = f"On the last {runs} that went well and had an earlier run "
    ends = "50% (25% to 75%), which serves, now by vote of the plans."
    assert result.sentence().startswith(begins)
    assert result.sentence().endswith(ends)
