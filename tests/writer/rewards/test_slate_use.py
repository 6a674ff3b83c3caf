"""Which of the cases shown a run followed: by what it did, whatever its backend says of it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from uuid import UUID

import pytest
from sqlalchemy import delete, select

from retrieval.tables.cases import cases
from retrieval.tables.decisions import decision_slots
from retrieval.tables.kinds import RewardSource
from tests.writer.conftest import Bank
from tests.writer.rewards.test_credit import Logged, log_decision
from writer.rewards.feedback import Feedback, credit_run, give_feedback
from writer.rewards.slate_use import agreed_with

CANCEL, MAIL, REFUND, CALL = range(4)
"""Moves of plans, as the hashes of them that are stored."""


@dataclass(frozen=True)
class Finished:
    """A case whose run began with a retrieval."""

    retrieval_id: UUID
    reward: float | None
    reward_source: RewardSource | None = "user"
    used_case_ids: tuple[UUID, ...] | None = None
    used_procedure_ids: tuple[UUID, ...] | None = None
    moves: tuple[int, ...] = ()


@pytest.mark.parametrize(
    ("run", "shown", "agreed"),
    [
        (
            [CANCEL, REFUND],
            [[REFUND, CANCEL], [CANCEL], [MAIL]],
            [1, 0.4943, 0],
        ),
        ([CANCEL], [[CANCEL, CANCEL], [CANCEL] * 3], [2 / 3, 2 / 4]),
        ([CANCEL], [[]], [0]),
        ([], [[], [MAIL, REFUND]], [0, 0]),
        ([CANCEL], [], []),
    ],
    ids=[
        "by moves, whatever their order",
        "each as often as it was made",
        "a plan that is not known",
        "a run whose plan is not known",
        "nothing shown",
    ],
)
def test_a_run_agrees_with_what_it_was_shown_as_far_as_it_did_the_same(
    run: list[int], shown: list[list[int]], agreed: list[float]
):
    assert agreed_with(run, shown) == pytest.approx(agreed, abs=1e-4)


def test_a_move_that_few_of_the_plans_have_counts_more_than_one_that_all_have():
    rare, usual = agreed_with([CALL, REFUND], [[CALL, REFUND], [CALL, CANCEL], [REFUND], [CALL]])[2:]
    assert rare > usual


async def test_of_two_refunds_the_one_whose_argument_the_run_followed_agrees_more_whatever_other_tools_were_shown(
    bank: Bank, user: str
):
    by_card, by_credit = 10, 11  # moves of the argument that tells the two apart
    plans = [[REFUND, by_card], [REFUND, by_credit]]
    for beside in ([], [[MAIL]]):
        shown = [*plans, *beside]
        known = await bank.add(user, *({"moves": plan} for plan in shown))
        decision_id = await log_decision(bank, user, Logged(range(len(shown)), None, None), known, known)
        await finish(bank, user, Finished(decision_id, 1.0, moves=tuple(plans[1])))
        one, other = (await agreed(bank, user, decision_id))[:2]
        assert (one < 0.5, other) == (True, 1.0)


async def test_the_case_that_a_run_followed_earns_its_reward_and_what_stood_beside_next_to_nothing(
    bank: Bank, user: str
):
    plans = [{"moves": [CANCEL]}, {"moves": [MAIL]}, {"moves": [CANCEL]}]
    known = await bank.add(user, *plans)
    decision_id = await log_decision(bank, user, Logged([0, 1, 2], None, None), known, known)
    await finish(bank, user, Finished(decision_id, 1.0, moves=(MAIL,)), gone=known[2])
    assert await agreed(bank, user, decision_id) == [0.0, 1.0, None]
    counted = select(cases.c.reuse_count).where(cases.c.id.in_(known)).order_by(cases.c.id)
    assert [row[0] for row in await bank.read(user, counted)] == pytest.approx([0.01 / 1.03, 1.01 / 1.03])


async def test_of_the_cases_that_a_backend_says_it_used_the_one_that_the_run_followed_earns(bank: Bank, user: str):
    known = await bank.add(user, {"moves": [CANCEL]}, {"moves": [MAIL]}, {"moves": [REFUND]})
    decision_id = await log_decision(bank, user, Logged([0, 1, 2], None, None), known, known)
    used = (known[0], known[2])
    await finish(bank, user, Finished(decision_id, 1.0, used_case_ids=used, moves=(REFUND,)))
    counted = select(cases.c.reuse_count).where(cases.c.id.in_(known)).order_by(cases.c.id)
    rows = await bank.read(user, counted)
    assert [row[0] for row in rows] == pytest.approx([0.01 / 1.02, 0, 1.01 / 1.02])


@pytest.mark.parametrize("first", ["A", "B"], ids=["A finishes first", "B finishes first"])
async def test_of_two_runs_of_one_retrieval_the_one_that_was_judged_last_speaks_for_the_slate(
    first: str, bank: Bank, user: str
):
    known = await bank.add(user, {"moves": [CANCEL]}, {"moves": [MAIL]})
    decision_id = await log_decision(bank, user, Logged([0, 1], None, None), known, known)
    moves = {"A": [CANCEL], "B": [MAIL]}
    runs = dict(zip(moves, await bank.add(user, *began_with(decision_id, moves)), strict=True))
    for name in (first, *({*moves} - {first})):
        await credit(bank, user, runs[name])
    await judge(bank, user, Feedback(0.0, "user", case_id=runs["A"]))
    assert await agreed(bank, user, decision_id) == [1.0, 0.0]
    assert await records(bank, user, known) == pytest.approx([1.01 / 1.02, 0.01 / 1.02, 0, 0])


async def test_a_run_whose_reward_does_not_count_says_nothing_of_the_slate(bank: Bank, user: str):
    known = await bank.add(user, {"moves": [CANCEL]}, {"moves": [MAIL]})
    decision_id = await log_decision(bank, user, Logged([0, 1], None, None), known, known)
    await finish(bank, user, Finished(decision_id, 1.0, "user", moves=(CANCEL,), used_case_ids=(known[0],)))
    for reward in (None, 0.0):
        other = Finished(decision_id, reward, "heuristic", moves=(MAIL,), used_case_ids=(known[1],))
        await finish(bank, user, other)
        assert await agreed(bank, user, decision_id) == [1.0, 0.0]
        assert await records(bank, user, known) == [1.0, 0.0, 1.0, 0.0]


async def test_what_a_run_without_a_reward_followed_shares_the_reward_that_its_retrieval_has(bank: Bank, user: str):
    known = await bank.add(user, {"moves": [CANCEL]}, {"moves": [MAIL]})
    decision_id = await log_decision(bank, user, Logged([0, 1], None, None), known, known)
    await judge(bank, user, Feedback(1.0, "heuristic", decision_id=decision_id))
    assert await records(bank, user, known) == [0.5] * 4
    await finish(bank, user, Finished(decision_id, None, None, moves=(MAIL,)))
    assert await records(bank, user, known) == pytest.approx([0.01 / 1.02, 1.01 / 1.02] * 2)


async def test_a_run_without_a_reward_is_no_use_of_what_a_retrieval_without_one_showed(bank: Bank, user: str):
    known = await bank.add(user, {"moves": [CANCEL]}, {"moves": [MAIL]})
    used = select(cases.c.last_used_at).where(cases.c.id.in_(known)).order_by(cases.c.id)
    for reward in (1.0, None):
        before = await bank.read(user, used)
        decision_id = await log_decision(bank, user, Logged([0, 1], None, None), known, known)
        await finish(bank, user, Finished(decision_id, reward, moves=(MAIL,)))
        assert (await bank.read(user, used) == before) is (reward is None)


async def test_a_run_speaks_for_the_slate_of_its_own_retrieval_alone(bank: Bank, user: str):
    known = await bank.add(user, {"moves": [CANCEL]}, {"moves": [MAIL]})
    ids = [await log_decision(bank, user, Logged([0, 1], None, None), known, known) for _ in range(2)]
    await finish(bank, user, Finished(ids[0], 1.0, moves=(MAIL,)))
    assert [await agreed(bank, user, each) for each in ids] == [[0.0, 1.0], [None, None]]


@pytest.mark.parametrize(
    ("used", "does", "proven"),
    [
        ([CANCEL, MAIL, REFUND, CALL], REFUND, []),
        ([CANCEL, MAIL], REFUND, [CANCEL, MAIL]),
        ([CANCEL, MAIL], MAIL, [MAIL]),
        ([MAIL], REFUND, [MAIL]),
    ],
    ids=["one of four that it followed", "two, neither of which it followed", "one was tried in vain", "the only one"],
)
async def test_to_be_followed_proves_nothing_and_to_be_tried_in_vain_does_not_either(
    used: list[int], does: int, proven: list[int], bank: Bank, user: str
):
    known = await bank.add(user, *({"moves": [move]} for move in (CANCEL, MAIL, REFUND, CALL)))
    decision_id = await log_decision(bank, user, Logged([0, 1, 2, 3], None, None), known, known)
    said = tuple(known[move] for move in used)
    await finish(bank, user, Finished(decision_id, 1.0, used_case_ids=said, moves=(does,)))
    found = select(cases.c.moves).where(cases.c.id.in_(known), cases.c.proven).order_by(cases.c.id)
    assert [row[0] for row in await bank.read(user, found)] == [[move] for move in proven]


def began_with(decision_id: UUID, moves: Mapping[str, Sequence[int]]) -> list[dict[str, object]]:
    return [{"retrieval_id": decision_id, "moves": each, "reward_source": "heuristic"} for each in moves.values()]


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
    (case_id,) = await bank.add(user, asdict(run))
    await credit(bank, user, case_id, gone)


async def credit(bank: Bank, user: str, case_id: UUID, gone: UUID | None = None) -> None:
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await connection.execute(delete(cases).where(cases.c.user_sub == user, cases.c.id == gone))
        await credit_run(connection, user, "test", case_id)
