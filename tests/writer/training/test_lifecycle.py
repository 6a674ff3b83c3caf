"""The life of a policy: promoted in another's place, or failed for good."""

from dataclasses import replace
from typing import Any

import pytest

from policy import features
from policy.decide import CANDIDATE, DEFAULT, SERVING, Policy
from policy.weights import pack
from tests.logs import TRUTH, draw
from tests.policies import head, stored
from tests.writer.conftest import Bank
from tests.writer.trainings import CANARY, give, learnt, log, never, rows, seen, statuses


async def test_a_winner_takes_the_place_of_what_served(bank: Bank, user: str):
    await log(bank, user, [])
    twin = Policy("q-1", head(), 1.0)  # who thinks as the default does
    await give(bank, user, stored("serving", twin.head))
    await give(bank, user, stored("candidate", TRUTH.head))
    arms = {DEFAULT: None, SERVING: twin, CANDIDATE: replace(TRUTH, version="q-2")}
    await log(bank, user, draw(600, arms, CANARY, seed=4))
    assert (await learnt(bank, user, never)).outcome == "promote"
    old, new = await rows(bank, user)
    assert (old.status, new.status) == ("retired", "serving")
    assert old.retired_at == new.promoted_at


@pytest.mark.parametrize(
    "broken",
    [
        stored("candidate", checksum=b"of others"),
        stored("serving", **dict(zip(("weights", "checksum"), pack(head(), features.VERSION - 1), strict=True))),
    ],
    ids=["a corrupt candidate", "a policy of other features"],
)
async def test_a_policy_that_cannot_be_loaded_has_failed_and_another_is_trained(
    broken: dict[str, Any], bank: Bank, user: str
):
    await log(bank, user, seen())
    await give(bank, user, broken)
    assert (await learnt(bank, user)).outcome == "candidate"
    assert await statuses(bank, user) == ["failed", "candidate"]
