"""The shared prior: who is in it, who is not, and what becomes of it when one of them goes."""

import asyncio
from typing import Any

import asyncpg
import numpy as np

from policy.examples import Examples
from retrieval.database.database import Database
from tests.writer.conftest import AGENT, Bank
from tests.writer.trainings import (
    LITTLE,
    everybody,
    log,
    meanwhile,
    rows,
    seen,
    statuses,
)
from writer.rights.erase import erase
from writer.training import lifecycle
from writer.training.shared_prior import CAP, FEWEST_USERS, MOST, digest, pool


def mute(count: int) -> Examples:
    """Decisions that tell their number alone, as a reward."""
    nothing = np.zeros((count, 1), np.float32)
    told = np.linspace(0, 1, count, dtype=np.float32)
    return Examples(
        inputs=nothing[:, :, None],
        prior=nothing,
        credit=nothing + 1,
        query=nothing,
        reward=told,
        weight=np.ones(count, np.float32),
        empty=np.zeros(count, bool),
        group=np.arange(count),
    )


async def sharing(bank: Bank, count: int, decisions: int = 45) -> list[str]:
    users = [f"sharer-{number}" for number in range(count)]
    for number, user in enumerate(users):
        await log(bank, user, seen(decisions, seed=10 + number))
        await bank.set_profile(user, contribute=True, receive=True)
    return users


async def receiving(bank: Bank, user: str, decisions: int = 45, seed: int = 9) -> None:
    await log(bank, user, seen(decisions, seed=seed))
    await bank.set_profile(user, receive=True)


async def shared(url: str, agent: str = "") -> list[Any]:
    """The heads that all agents' users share, or one agent's."""
    owner = await asyncpg.connect(url.replace("+asyncpg", ""))
    try:
        of = "SELECT * FROM policies WHERE user_sub = '' AND agent_key = $1 ORDER BY version"
        return list(await owner.fetch(of, agent))
    finally:
        await owner.close()


async def test_a_prior_is_shared_by_those_who_opted_in_and_falls_with_any_of_them(alone: tuple[Bank, str]):
    bank, url = alone
    users = await sharing(bank, FEWEST_USERS + 1)
    await receiving(bank, "private")
    outcomes = await everybody(bank)
    assert {each.outcome for each in outcomes.values()} == {"candidate"}
    (row,) = await shared(url)
    assert sorted(row["contributors"]) == sorted(digest(user) for user in users)
    assert (row["status"], row["version"]) == ("retired", 1)
    assert not any(user in str(dict(row)) for user in [*users, "private"])
    (private,) = await rows(bank, "private")
    assert private.prior_version == 1

    assert (await erase(bank.database, users[0])).priors_dropped == 2
    for emptied in [*await shared(url), *await shared(url, AGENT)]:
        assert (emptied["weights"], emptied["checksum"], emptied["contributors"]) == (b"", b"", [])
    (live,) = await bank.read("private", lifecycle.live("private", AGENT))
    assert not live.stands

    again = await everybody(bank)
    assert {user: each.outcome for user, each in again.items()} == dict.fromkeys([*users[1:], "private"], "candidate")
    (row,) = await shared(url)
    assert sorted(row["contributors"]) == sorted(digest(user) for user in users[1:])
    assert await statuses(bank, "private") == ["failed", "candidate"]


async def test_fewer_than_that_share_nothing(alone: tuple[Bank, str]):
    bank, url = alone
    users = await sharing(bank, FEWEST_USERS - 1)
    await receiving(bank, "private")
    await everybody(bank)
    assert await shared(url) == []
    assert {(await rows(bank, user))[0].prior_version for user in [*users, "private"]} == {None}


async def test_who_has_too_few_decisions_for_a_head_of_their_own_still_trains_the_prior(alone: tuple[Bank, str]):
    bank, url = alone
    users = await sharing(bank, 2 * FEWEST_USERS, decisions=LITTLE.decisions // 2)
    await receiving(bank, "private")
    outcomes = await everybody(bank)
    assert outcomes.pop("private").outcome == "candidate"
    assert {each.outcome for each in outcomes.values()} == {"too few decisions"}
    (row,) = await shared(url)
    assert sorted(row["contributors"]) == sorted(digest(user) for user in users)
    assert (await rows(bank, "private"))[0].prior_version == row["version"]


async def test_a_handful_of_decisions_makes_no_prior_however_many_share_them(alone: tuple[Bank, str]):
    bank, url = alone
    await sharing(bank, 2 * FEWEST_USERS, decisions=LITTLE.decisions // 4)
    await receiving(bank, "private")
    assert (await everybody(bank))["private"].outcome == "candidate"
    assert await shared(url) == []


async def test_the_numbers_of_who_did_not_opt_in_move_no_prior(alone: tuple[Bank, str]):
    bank, url = alone
    weights = []
    for seed in (8, 9):
        users = await sharing(bank, FEWEST_USERS)
        await receiving(bank, "private", 60, seed)
        await everybody(bank)
        weights.append((await shared(url))[-1]["weights"])
        for user in [*users, "private"]:
            await erase(bank.database, user)
    assert weights[0] == weights[1]
    assert 1 / FEWEST_USERS <= CAP


async def test_a_sharer_erased_while_the_prior_trains_is_in_none(alone: tuple[Bank, str]):
    bank, url = alone
    users = await sharing(bank, FEWEST_USERS + 1)

    async def purge(database: Database) -> None:
        assert (await erase(database, users[2])).clean

    outcomes = await everybody(bank, meanwhile(url, purge))
    assert outcomes.pop(users[2]).outcome == "erased"
    assert {each.outcome for each in outcomes.values()} == {"candidate"}
    (row,) = await shared(url)
    assert sorted(row["contributors"]) == sorted(digest(user) for user in outcomes)
    assert {(await rows(bank, user))[0].prior_version for user in outcomes} == {1}


async def test_two_trainers_of_a_shared_prior_at_once_break_nothing(alone: tuple[Bank, str]):
    bank, url = alone
    users = await sharing(bank, FEWEST_USERS)
    found = await asyncio.gather(everybody(bank), everybody(bank))
    told = [each.outcome for outcomes in found for each in outcomes.values()]
    assert set(told) <= {"candidate", "another trainer was first", "insufficient evidence"}
    assert told.count("candidate") == len(users)
    for user in users:
        (row,) = await rows(bank, user)
        assert row.prior_version in {prior["version"] for prior in await shared(url)}


def test_of_many_users_the_latest_decisions_alone_are_pooled_as_many_of_each():
    long, short = (mute(count) for count in (20_000, 100))
    pooled = pool({"a": [long], "b": [long], "c": [short], "d": [short], "e": [short]})
    assert pooled is not None
    assert len(pooled) == 2 * MOST // 5 + 3 * 100
    assert pooled.reward[0] == long.reward[-MOST // 5]
