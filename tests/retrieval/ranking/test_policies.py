"""Learned policies where they serve: whose order is served, how often, with what chance, and what they learn from."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from policy import features
from policy.decide import REPLAYED
from policy.inputs import CASE, QUERY
from policy.network import untrained
from policy.weights import pack
from retrieval.retrieve import Reader
from tests.policies import head, stored
from tests.retrieval.conftest import EMBEDDER, ask, ids, logged, slates, walls
from tests.writer.conftest import AGENT, Bank
from writer.rights.erase import erase
from writer.training import lifecycle

OLDEST_FIRST = head(step_count=50.0)
NEWEST_FIRST = head(step_count=-50.0)


async def give(bank: Bank, user: str, new: dict[str, Any], agent: str = AGENT) -> int:
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        return await lifecycle.add(connection, user, agent, new)


# Serving


async def test_a_promoted_policy_gives_the_order_and_says_so(bank: Bank, reader: Reader, user: str):
    oldest = (await walls(bank, user))[:4]
    before = await ask(reader, user)
    await give(bank, user, stored("serving", OLDEST_FIRST))
    for _ in range(10):  # it keeps its share for the default
        after = await ask(reader, user)
        if after.policy_version == "q-1":
            break
    assert ids(after) == oldest != ids(before)
    assert (before.policy_version, after.policy_version) == (REPLAYED, "q-1")
    assert {choice.q_value for choice in before.choices} == {None}
    assert all(0.5 < choice.q_value <= 1 for choice in after.choices)
    for place in range(len(after.choices)):
        terms = after.terms(place)
        assert terms["score"] == pytest.approx(terms["prior"] + terms["residual"], abs=1e-4)
        assert terms["residual"] == pytest.approx(50 * np.log1p(terms["step_count"]), rel=1e-4)
    *_, entry = await logged(bank, user)
    assert (entry.arm, entry.policy_version) == ("serving", "q-1")
    assert entry.slate_propensity == pytest.approx(0.95)


async def test_the_blend_says_how_much_a_policy_counts(bank: Bank, user: str):
    await walls(bank, user)
    reader = Reader(bank.database, EMBEDDER)
    plain = ids(await ask(reader, user))
    await give(bank, user, stored("serving", OLDEST_FIRST, blend=0.0))
    unheard = await ask(reader, user)
    assert (ids(unheard), unheard.policy_version) == (plain, "q-1")


async def test_a_policy_of_one_user_or_agent_is_nothing_to_others(bank: Bank, user: str):
    reader, other = Reader(bank.database, EMBEDDER), f"{user}-other"
    mine, theirs = await walls(bank, user), await walls(bank, other)
    plain = await ask(reader, other)
    await give(bank, user, stored("serving", OLDEST_FIRST))
    await give(bank, other, stored("serving", OLDEST_FIRST), "another agent")
    assert ids(await ask(reader, user)) == mine[:4]
    again = await ask(reader, other)
    assert (ids(again), again.policy_version) == (ids(plain), REPLAYED)
    assert set(ids(again)) <= set(theirs)


async def test_a_rollback_takes_effect_on_the_next_retrieve(bank: Bank, user: str):
    reader = Reader(bank.database, EMBEDDER)
    await walls(bank, user)
    plain = ids(await ask(reader, user))
    await give(bank, user, stored("serving", OLDEST_FIRST))
    assert ids(await ask(reader, user)) != plain
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        assert await lifecycle.roll_back(connection, user, AGENT) == 1
    assert ids(await ask(reader, user)) == plain


async def test_a_profile_that_does_not_learn_is_served_by_the_default(bank: Bank, user: str):
    reader = Reader(bank.database, EMBEDDER)
    await walls(bank, user)
    await give(bank, user, stored("serving", OLDEST_FIRST))
    await bank.set_profile(user, learning=False)
    assert (await ask(reader, user)).policy_version == REPLAYED


async def test_whoever_begins_anew_after_an_erasure_does_not_get_the_erased_head(bank: Bank, user: str):
    reader = Reader(bank.database, EMBEDDER)
    ids_before = await walls(bank, user)
    await give(bank, user, stored("serving", OLDEST_FIRST))
    assert ids(await ask(reader, user)) == ids_before[:4]
    await erase(bank.database, user)
    ids_after = await walls(bank, user)
    assert await give(bank, user, stored("serving", NEWEST_FIRST)) == 1
    assert ids(await ask(reader, user)) == ids_after[:-5:-1]


# Trials


async def test_a_candidate_serves_its_share_and_the_chances_are_those_of_both(bank: Bank, reader: Reader, user: str):
    oldest, n = (await walls(bank, user))[:4], 240
    await give(bank, user, stored("candidate", OLDEST_FIRST))
    for _ in range(n):
        await ask(reader, user)
    entries, slots = await logged(bank, user), await slates(bank, user)
    share = sum(entry.arm == "candidate" for entry in entries) / n
    assert share == pytest.approx(0.25, abs=4.5 * np.sqrt(0.25 * 0.75 / n))
    for entry in entries:
        served = [slot.case_id for slot in slots[entry.id]]
        assert (served == oldest) == (entry.arm == "candidate") == (entry.policy_version == "q-1")
        chance = 0.25 if entry.arm == "candidate" else 0.75
        assert entry.slate_propensity == pytest.approx(chance)
        # each of them is in its place whenever its slate is served, and perhaps in the other one's, too
        assert all(slot.propensity >= chance - 1e-6 for slot in slots[entry.id])


async def test_a_candidate_that_seldom_differs_has_half_of_the_decisions_on_which_it_does(
    bank: Bank, reader: Reader, user: str
):
    await walls(bank, user)
    await give(bank, user, stored("candidate", OLDEST_FIRST, metrics={"differs": 0.2}))
    await ask(reader, user)
    *_, entry = await logged(bank, user)
    assert entry.slate_propensity == pytest.approx(0.5)


async def test_a_slate_on_which_candidate_and_default_agree_is_certain(bank: Bank, reader: Reader, user: str):
    await walls(bank, user)
    await give(bank, user, stored("candidate"))
    for _ in range(60):
        await ask(reader, user)
    entries = await logged(bank, user)
    assert {entry.arm for entry in entries} == {"default", "candidate"}
    assert {entry.slate_propensity for entry in entries} == {1.0}


async def test_where_nothing_may_be_tried_out_a_trial_waits(bank: Bank, user: str):
    await walls(bank, user)
    await give(bank, user, stored("candidate", OLDEST_FIRST))
    reader = Reader(bank.database, EMBEDDER)
    for _ in range(20):
        await ask(reader, user)
    assert {entry.arm for entry in await logged(bank, user)} == {"default"}


# What cannot serve


def _other_inputs() -> tuple[bytes, bytes]:
    return pack(untrained(len(CASE) + 1, len(QUERY)), features.VERSION)


BROKEN = {
    "by its checksum": stored("serving", OLDEST_FIRST, checksum=b"of others"),
    "by its version": stored(
        "serving", **dict(zip(("weights", "checksum"), pack(OLDEST_FIRST, features.VERSION + 1), strict=True))
    ),
    "by its inputs": stored("serving", **dict(zip(("weights", "checksum"), _other_inputs(), strict=True))),
    "by its numbers": stored("serving", head(vote=float("nan"))),
}


@pytest.mark.parametrize(
    ("why", "known"),
    [
        ("WeightsCorrupt", "by its checksum"),
        ("WeightsCorrupt", "by its numbers"),
        ("WrongFeatureVersion", "by its version"),
        ("WrongFeatureVersion", "by its inputs"),
    ],
)
async def test_a_policy_that_cannot_be_loaded_is_left_to_the_default_and_counted_once(
    why: str, known: str, bank: Bank, reader: Reader, user: str
):
    def refused() -> float:
        labels = {"why": why}
        return REGISTRY.get_sample_value("casebank_policies_refused_total", labels) or 0

    await walls(bank, user)
    plain, counted = await ask(reader, user), refused()
    await give(bank, user, BROKEN[known])
    with capture_logs() as told:
        found = [await ask(reader, user) for _ in range(3)]
    assert [ids(slate) for slate in found] == [ids(plain)] * 3
    assert {slate.policy_version for slate in found} == {REPLAYED}
    assert refused() == counted + 1
    (entry,) = [entry for entry in told if entry["event"] == "policy.refused"]
    assert (entry["why"], entry["version"]) == (why, 1)
    assert user not in str(entry)
    assert {entry.arm for entry in await logged(bank, user)} == {"default"}
