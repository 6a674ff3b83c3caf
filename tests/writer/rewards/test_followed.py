"""Which of the cases shown a run followed: by what it did, whatever its backend says of it."""

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

import pytest
from sqlalchemy import delete, select

from retrieval.schema import cases, decision_slots
from tests.writer.conftest import Bank
from tests.writer.rewards.test_credit import Logged, log_decision
from tests.writer.rewards.test_feedback import Finished
from writer.rewards.feedback import credit_run
from writer.rewards.followed import agreed_with


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
    ids=["by tools, whatever their order", "to change nothing is a plan", "one tool: by the steps of the plans"],
)
def test_a_run_agrees_with_what_it_was_shown_as_far_as_it_did_the_same(
    run: Done, shown: list[Done], agreed: list[float]
):
    assert agreed_with(run, shown) == pytest.approx(agreed)


async def test_the_case_that_a_run_followed_earns_its_reward_and_what_stood_beside_next_to_nothing(
    bank: Bank, user: str
):
    plans = [{"effects": ["cancel"]}, {"effects": ["mail"]}, {"effects": ["cancel"]}]
    known = await bank.add(user, *plans)
    decision_id = await log_decision(bank, user, Logged([0, 1, 2], None, None), known, known)
    await finish(bank, user, Finished(decision_id, 1.0, effects=("mail",)), gone=known[2])
    slot = decision_slots.c
    assert await bank.read(user, select(slot.agreed).where(slot.user_sub == user).order_by(slot.place)) == [
        (0.0,),
        (1.0,),
        (None,),
    ]
    counted = select(cases.c.reuse_count).where(cases.c.user_sub == user).order_by(cases.c.id)
    assert [row[0] for row in await bank.read(user, counted)] == pytest.approx([0.01 / 1.03, 1.01 / 1.03])


async def test_of_the_cases_that_a_backend_says_it_used_the_one_that_the_run_followed_earns(bank: Bank, user: str):
    known = await bank.add(user, {"effects": ["cancel"]}, {"effects": ["mail"]}, {"effects": ["refund"]})
    decision_id = await log_decision(bank, user, Logged([0, 1, 2], None, None), known, known)
    used = (known[0], known[2])
    await finish(bank, user, Finished(decision_id, 1.0, used_case_ids=used, effects=("refund",)))
    counted = select(cases.c.reuse_count, cases.c.proven).where(cases.c.user_sub == user).order_by(cases.c.id)
    rows = await bank.read(user, counted)
    assert [row[0] for row in rows] == pytest.approx([0.01 / 1.02, 0, 1.01 / 1.02])
    assert [row[1] for row in rows] == [False, False, True]


async def finish(bank: Bank, user: str, run: Finished, gone: UUID | None = None) -> None:
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await connection.execute(delete(cases).where(cases.c.user_sub == user, cases.c.id == gone))
        await credit_run(connection, user, "test", run)
