"""Uses are counted from the log of decisions, and a version that does worse is rolled back."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from tests.writer.conftest import Bank
from tests.writer.procedure_bank import (
    PLAN,
    ask,
    ended,
    failing_run,
    finish,
    noted,
    stored,
    two_versions,
    use,
    versions,
)
from writer.procedures import curation
from writer.procedures.counters import clearly_worse
from writer.rewards.feedback import Feedback, give_feedback


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
    assert clearly_worse(*version, *parent) is worse


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
        await curation.pin(connection, bank.author(user), procedure_id, 2, pinned=True)
    for _ in range(6):
        await use(bank, user, procedure_id, 0.0)
    assert await versions(bank, user, procedure_id) == [(1, "superseded"), (2, "active")]
