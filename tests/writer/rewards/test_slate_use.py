"""Which of the cases shown a run followed: by what it did, whatever its backend says of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

import pytest
from sqlalchemy import delete, select, update

from retrieval.tables.cases import cases
from retrieval.tables.decisions import decision_slots, decisions
from tests.writer.conftest import Bank
from tests.writer.rewards.test_credit import Logged, log_decision
from tests.writer.rewards.test_feedback import Finished
from writer.rewards.feedback import Feedback, credit_run, give_feedback
from writer.rewards.slate_use import agreed_with


@dataclass(frozen=True)
class Done:
    effects: tuple[str, ...] = ()
    plan: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("run", "shown", "agreed"),
    [
        (Done(("cancel", "refund")), [Done(("refund", "cancel")), Done(("cancel",)), Done(("mail",))], [1, 2 / 3, 0]),
        (Done(), [Done(), Done(("mail", "refund"))], [1, 0]),
        (
            Done(("sql",), ("add a default",)),
            [Done(("sql", "sql"), ("Add a DEFAULT",)), Done(("sql",), ("cast the type",))],
            [1, 0],
        ),
    ],
    ids=[
        "by tools, whatever their order",
        "to change nothing is a plan",
        "one tool: by the steps of the plans",
    ],
)
def test_a_run_agrees_with_what_it_was_shown_as_far_as_it_did_the_same(
    run: Done, shown: list[Done], agreed: list[float]
):
    assert agreed_with(run, shown) == pytest.approx(agreed)


@pytest.mark.parametrize(("beside", "expected"), [([], [1.0, 0.0]), (["mail"], [1.0, 1.0])])
async def test_plans_are_compared_as_they_were_among_all_the_candidates(
    beside: list[str], expected: list[float], bank: Bank, user: str
):
    plans = [{"effects": ["sql"], "plan": [step]} for step in ("cast the type", "add a default", "retry")]
    known = await bank.add(user, *plans[:2], {**plans[2], "effects": ["sql", *beside]})
    decision_id = await log_decision(bank, user, Logged([0, 1], None, None), known, known)
    mine = decisions.c.user_sub == user, decisions.c.id == decision_id
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await connection.execute(update(decisions).where(*mine).values(candidate_ids=known))
    await finish(bank, user, Finished(decision_id, 1.0, effects=("sql",), plan=("Cast the type",)))
    assert await agreed(bank, user, decision_id) == expected


async def test_the_case_that_a_run_followed_earns_its_reward_and_what_stood_beside_next_to_nothing(
    bank: Bank, user: str
):
    plans = [{"effects": ["cancel"]}, {"effects": ["mail"]}, {"effects": ["cancel"]}]
    known = await bank.add(user, *plans)
    decision_id = await log_decision(bank, user, Logged([0, 1, 2], None, None), known, known)
    await finish(bank, user, Finished(decision_id, 1.0, effects=("mail",)), gone=known[2])
    assert await agreed(bank, user, decision_id) == [0.0, 1.0, None]
    counted = select(cases.c.reuse_count).where(cases.c.user_sub == user).order_by(cases.c.id)
    assert [row[0] for row in await bank.read(user, counted)] == pytest.approx([0.01 / 1.03, 1.01 / 1.03])


async def test_of_the_cases_that_a_backend_says_it_used_the_one_that_the_run_followed_earns(bank: Bank, user: str):
    known = await bank.add(user, {"effects": ["cancel"]}, {"effects": ["mail"]}, {"effects": ["refund"]})
    decision_id = await log_decision(bank, user, Logged([0, 1, 2], None, None), known, known)
    used = (known[0], known[2])
    await finish(bank, user, Finished(decision_id, 1.0, used_case_ids=used, effects=("refund",)))
    counted = select(cases.c.reuse_count).where(cases.c.user_sub == user).order_by(cases.c.id)
    rows = await bank.read(user, counted)
    assert [row[0] for row in rows] == pytest.approx([0.01 / 1.02, 0, 1.01 / 1.02])


@pytest.mark.parametrize("first", ["A", "B"], ids=["A finishes first", "B finishes first"])
async def test_of_two_runs_of_one_retrieval_the_one_that_was_judged_last_speaks_for_the_slate(
    first: str, bank: Bank, user: str
):
    known = await bank.add(user, {"effects": ["cancel"]}, {"effects": ["mail"]})
    decision_id = await log_decision(bank, user, Logged([0, 1], None, None), known, known)
    effects = {"A": ["cancel"], "B": ["mail"]}
    runs = dict(zip(effects, await bank.add(user, *began_with(decision_id, effects)), strict=True))
    for name in (first, *({*effects} - {first})):
        await finish(bank, user, Finished(decision_id, 1.0, "heuristic", effects=tuple(effects[name])))
    await judge(bank, user, Feedback(0.0, "user", case_id=runs["A"]))
    assert await agreed(bank, user, decision_id) == [1.0, 0.0]
    assert await records(bank, user, known) == pytest.approx([1.01 / 1.02, 0.01 / 1.02, 0, 0])


async def test_a_run_whose_reward_does_not_count_says_nothing_of_the_slate(bank: Bank, user: str):
    known = await bank.add(user, {"effects": ["cancel"]}, {"effects": ["mail"]})
    decision_id = await log_decision(bank, user, Logged([0, 1], None, None), known, known)
    await finish(bank, user, Finished(decision_id, 1.0, "user", effects=("cancel",), used_case_ids=(known[0],)))
    for reward in (None, 0.0):
        other = Finished(decision_id, reward, "heuristic", effects=("mail",), used_case_ids=(known[1],))
        await finish(bank, user, other)
        assert await agreed(bank, user, decision_id) == [1.0, 0.0]
        assert await records(bank, user, known) == [1.0, 0.0, 1.0, 0.0]


async def test_what_a_run_without_a_reward_followed_shares_the_reward_that_its_retrieval_has(bank: Bank, user: str):
    known = await bank.add(user, {"effects": ["cancel"]}, {"effects": ["mail"]})
    decision_id = await log_decision(bank, user, Logged([0, 1], None, None), known, known)
    await judge(bank, user, Feedback(1.0, "heuristic", decision_id=decision_id))
    assert await records(bank, user, known) == [0.5] * 4
    await finish(bank, user, Finished(decision_id, None, None, effects=("mail",)))
    assert await records(bank, user, known) == pytest.approx([0.01 / 1.02, 1.01 / 1.02] * 2)


async def test_a_run_without_a_reward_is_no_use_of_what_a_retrieval_without_one_showed(bank: Bank, user: str):
    known = await bank.add(user, {"effects": ["cancel"]}, {"effects": ["mail"]})
    used = select(cases.c.last_used_at).where(cases.c.user_sub == user).order_by(cases.c.id)
    for reward in (1.0, None):
        before = await bank.read(user, used)
        decision_id = await log_decision(bank, user, Logged([0, 1], None, None), known, known)
        await finish(bank, user, Finished(decision_id, reward, effects=("mail",)))
        assert (await bank.read(user, used) == before) is (reward is None)


async def test_a_run_speaks_for_the_slate_of_its_own_retrieval_alone(bank: Bank, user: str):
    known = await bank.add(user, {"effects": ["cancel"]}, {"effects": ["mail"]})
    ids = [await log_decision(bank, user, Logged([0, 1], None, None), known, known) for _ in range(2)]
    await finish(bank, user, Finished(ids[0], 1.0, effects=("mail",)))
    assert [await agreed(bank, user, each) for each in ids] == [[0.0, 1.0], [None, None]]


@pytest.mark.parametrize(
    ("used", "does", "proven"),
    [
        ("cancel mail refund call", "refund", []),
        ("cancel mail", "refund", ["cancel", "mail"]),
        ("cancel mail", "mail", ["mail"]),
        ("mail", "refund", ["mail"]),
    ],
    ids=["one of four that it followed", "two, neither of which it followed", "one was tried in vain", "the only one"],
)
async def test_to_be_followed_proves_nothing_and_to_be_tried_in_vain_does_not_either(
    used: str, does: str, proven: list[str], bank: Bank, user: str
):
    tools = ["cancel", "mail", "refund", "call"]
    known = dict(zip(tools, await bank.add(user, *[{"effects": [tool]} for tool in tools]), strict=True))
    decision_id = await log_decision(bank, user, Logged([0, 1, 2, 3], None, None), [*known.values()], [*known.values()])
    said = tuple(known[tool] for tool in used.split())
    await finish(bank, user, Finished(decision_id, 1.0, used_case_ids=said, effects=(does,)))
    found = select(cases.c.effects).where(cases.c.user_sub == user, cases.c.proven).order_by(cases.c.id)
    assert [row[0] for row in await bank.read(user, found)] == [[tool] for tool in proven]


def began_with(decision_id: UUID, effects: Mapping[str, Sequence[str]]) -> list[dict[str, object]]:
    return [{"retrieval_id": decision_id, "effects": each} for each in effects.values()]


async def agreed(bank: Bank, user: str, decision_id: UUID) -> list[float | None]:
    slot = decision_slots.c
    found = select(slot.agreed).where(slot.user_sub == user, slot.decision_id == decision_id).order_by(slot.place)
    return [row[0] for row in await bank.read(user, found)]


async def records(bank: Bank, user: str, case_ids: Sequence[UUID]) -> list[float]:
    """How often each of the cases was reused, and then what each of them earned by that."""
    found = select(cases.c.id, cases.c.reuse_count, cases.c.reuse_reward).where(cases.c.user_sub == user)
    by_id = {row.id: row for row in await bank.read(user, found)}
    return [getattr(by_id[each], name) for name in ("reuse_count", "reuse_reward") for each in case_ids]


async def judge(bank: Bank, user: str, feedback: Feedback) -> None:
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await give_feedback(connection, user, "test", feedback)


async def finish(bank: Bank, user: str, run: Finished, gone: UUID | None = None) -> None:
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await connection.execute(delete(cases).where(cases.c.user_sub == user, cases.c.id == gone))
        await credit_run(connection, user, "test", run)
