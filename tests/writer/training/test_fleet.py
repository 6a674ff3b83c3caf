"""A fleet's policy: how it comes to serve, where it does not, and what an erasure does to it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest
from sqlalchemy import select

from policy.decide import CANDIDATE, DEFAULT, SERVING, Budget, Policy
from policy.inputs import CASE, QUERY
from policy.network import Head, untrained
from retrieval.tables.columns import SHARED
from retrieval.tables.profiles import profiles
from tests.logs import TRUTH, draw, put
from tests.policies import head, stored
from tests.writer.conftest import AGENT, Bank
from tests.writer.trainings import CANARY, LITTLE, give, log, never, night, quick, rows, seen, statuses
from writer.rights.erase import erase
from writer.training import contributions, lifecycle, shared_prior
from writer.training.candidates import Recipe
from writer.training.fit import Demand
from writer.training.fleet import retrain
from writer.training.shared_prior import FEWEST_USERS, Trained, digest

USERS = 40
RETRAIN = Recipe(quick, LITTLE)


async def a_fleet(bank: Bank, status: str, contributors: Sequence[str], **more: Any) -> None:
    """The truth on trial, or in service, of the agent's fleet."""
    nothing = untrained(len(CASE), len(QUERY))
    trained = {SHARED: Trained(nothing, 500, 5), AGENT: Trained(TRUTH.head, 500, 5)}
    async with bank.database.as_worker() as connection:
        lives = {AGENT: {"status": status, "metrics": {"differs": 0.5}, **more}}
        await shared_prior.store(connection, trained, contributors, lives)


async def receivers(bank: Bank, count: int, decisions: int, **truth: bool) -> list[str]:
    """Users who follow the fleet's trial, as they would have been served."""
    users = [f"receiver-{number}" for number in range(count)]
    arms: dict[str, Policy | None] = {DEFAULT: None, CANDIDATE: TRUTH}
    for number, user in enumerate(users):
        await log(bank, user, draw(decisions, arms, CANARY, seed=100 + number, **truth))
        await bank.set_profile(user, receive=True)
    return users


async def of_fleet(url: str, agent: str = AGENT) -> list[Any]:
    owner = await asyncpg.connect(url.replace("+asyncpg", ""))
    try:
        rows = "SELECT * FROM policies WHERE user_sub = '' AND agent_key = $1 ORDER BY version"
        return list(await owner.fetch(rows, agent))
    finally:
        await owner.close()


async def left_at(bank: Bank, user: str) -> Any:
    (row,) = await bank.read(user, select(profiles.c.fleet_left_at).where(profiles.c.user_sub == user))
    return row.fleet_left_at


@pytest.mark.parametrize(("reversed_truth", "status"), [(False, "serving"), (True, "candidate")])
async def test_the_gate_lets_a_fleets_policy_serve_by_the_log_of_all_its_users_or_does_not(
    alone: tuple[Bank, str], *, reversed_truth: bool, status: str
):
    bank, url = alone
    await a_fleet(bank, "candidate", ["somebody"])
    await receivers(bank, USERS, 25, reversed_truth=reversed_truth)
    found = await night(bank, never)
    (row,) = await of_fleet(url)
    assert found[SHARED].verdict is not None
    assert found[SHARED].verdict.groups == USERS
    if reversed_truth:
        assert row["status"] != "serving"
    else:
        assert (row["status"], found[SHARED].outcome) == (status, "promote")


async def test_a_fleets_policy_whose_reward_falls_over_all_its_users_is_rolled_back_and_no_user_has_to_leave(
    alone: tuple[Bank, str],
):
    bank, url = alone
    await a_fleet(bank, "candidate", ["somebody"])
    users = await receivers(bank, USERS, 25)
    assert (await night(bank, never))[SHARED].outcome == "promote"
    arms: dict[str, Policy | None] = {DEFAULT: None, SERVING: replace(TRUTH, version="f-1")}
    served = {user: draw(6, arms, Budget(0.0, 0.0, 0.05), seed=200 + number) for number, user in enumerate(users)}
    for user, drawn in served.items():
        await log(bank, user, drawn)
    assert SHARED not in await night(bank, never)
    assert [row["status"] for row in await of_fleet(url)] == ["serving"]
    for user, drawn in served.items():
        await log(bank, user, [replace(each, reward=0.0) for each in drawn])
    assert (await night(bank, never))[SHARED].outcome == "roll back"
    (row,) = await of_fleet(url)
    assert row["status"] == "rolled_back"
    assert [await left_at(bank, user) for user in users] == [None] * USERS  # of few decisions each


async def test_users_who_do_not_receive_are_no_witnesses(alone: tuple[Bank, str]):
    bank, url = alone
    await a_fleet(bank, "candidate", ["somebody"])
    for user in await receivers(bank, USERS, 10):
        await bank.set_profile(user, receive=False)
    assert SHARED not in await night(bank, never)
    (row,) = await of_fleet(url)
    assert (row["status"], row["verdict"]) == ("candidate", None)


async def test_a_profile_in_which_the_fleets_policy_does_worse_leaves_it_and_the_others_do_not(
    alone: tuple[Bank, str],
):
    bank, _ = alone
    await a_fleet(bank, "serving", ["somebody"])
    arms: dict[str, Policy | None] = {DEFAULT: None, SERVING: TRUTH}
    for user, is_reversed in (("worse", True), ("better", False)):
        await log(bank, user, draw(600, arms, Budget(explore=0.0, kept=0.5), seed=3, reversed_truth=is_reversed))
        await bank.set_profile(user, receive=True)
    await night(bank, quick, LITTLE)
    assert (await left_at(bank, "worse")) is not None
    assert (await left_at(bank, "better")) is None


async def test_a_trial_of_a_profiles_own_that_shows_the_fleets_policy_to_be_worse_ends_both_there(
    alone: tuple[Bank, str],
):
    bank, url = alone
    await a_fleet(bank, "serving", ["somebody"])
    await log(bank, "worse", [])
    await bank.set_profile("worse", receive=True)
    await give(bank, "worse", stored("candidate", head(log_age=1.0)))
    own = Policy("q-1", head(log_age=1.0), 1.0)
    arms: dict[str, Policy | None] = {DEFAULT: None, SERVING: TRUTH, CANDIDATE: own}
    even = Budget(explore=0.0, canary=0.3, kept=0.35)
    await log(bank, "worse", draw(900, arms, even, seed=3, reversed_truth=True))
    assert (await night(bank, quick, LITTLE))["worse"].outcome == "roll back"
    assert await left_at(bank, "worse") is not None
    assert await statuses(bank, "worse") == ["rejected"]
    (fleet,) = await of_fleet(url)
    assert fleet["status"] == "serving"


async def test_a_contributor_who_goes_takes_the_policy_along_and_it_is_trained_again_without_them(
    alone: tuple[Bank, str],
):
    bank, url = alone
    users = [f"sharer-{number}" for number in range(FEWEST_USERS + 2)]
    for number, user in enumerate(users):
        await log(bank, user, seen(45, seed=10 + number))
        await bank.set_profile(user, contribute=True)
    await a_fleet(bank, "serving", users)
    (before,) = await of_fleet(url)
    await night(bank)
    await erase(bank.database, users[0])
    serving = [row for row in await of_fleet(url) if row["status"] == "serving"]
    assert [(row["weights"], row["contributors"]) for row in serving] == [(b"", [])]

    assert {each.outcome for each in await retrain(bank.database, "choice", RETRAIN)} == {"trained again"}
    (after,) = [row for row in await of_fleet(url) if row["status"] == "serving"]
    assert after["weights"] not in {b"", before["weights"]}
    assert sorted(after["contributors"]) == sorted(digest(user) for user in users[1:])
    assert after["version"] > before["version"]  # nobody takes it for the one whose weights they remember
    assert after["created_at"] == before["created_at"]
    assert await retrain(bank.database, "choice", RETRAIN) == []


async def test_a_policy_of_ones_own_that_began_there_stops_at_once_and_serves_again_after_the_training(
    alone: tuple[Bank, str],
):
    bank, _ = alone
    users = [f"sharer-{number}" for number in range(FEWEST_USERS + 1)]
    for number, user in enumerate(users):
        await log(bank, user, seen(45, seed=10 + number))
        await bank.set_profile(user, contribute=True, receive=True)
    await night(bank)
    (before,) = await rows(bank, users[1])
    async with bank.database.as_user(users[1], datetime.now(UTC)) as connection:
        await lifecycle.set_columns(connection, before, verdict={"outcome": "promote"})
        await lifecycle.set_status(connection, before, "serving")
    await erase(bank.database, users[0])
    (lost,) = await bank.read(users[1], lifecycle.live(users[1], AGENT))
    assert not lost.stands

    again = {each.user_sub: each.outcome for each in await retrain(bank.database, "choice", RETRAIN)}
    assert again[users[1]] == "trained again"
    (now,) = await bank.read(users[1], lifecycle.live(users[1], AGENT))
    assert (now.status, now.stands, now.verdict) == ("serving", True, {"outcome": "promote"})
    assert (now.version, now.weights != before.weights) == (2, True)
    assert await statuses(bank, users[1]) == ["failed", "serving"]


async def test_a_fleet_with_too_few_left_ends(alone: tuple[Bank, str]):
    bank, url = alone
    users = [f"sharer-{number}" for number in range(FEWEST_USERS)]
    for number, user in enumerate(users):
        await log(bank, user, seen(45, seed=10 + number))
        await bank.set_profile(user, contribute=True)
    await night(bank)
    assert await of_fleet(url)
    await erase(bank.database, users[0])
    await retrain(bank.database, "choice", RETRAIN)
    assert await of_fleet(url) == []


async def test_one_agents_users_alone_train_its_head_and_all_agents_users_where_it_begins(alone: tuple[Bank, str]):
    bank, url = alone
    for agent in (AGENT, "other"):
        for number in range(FEWEST_USERS):
            user = f"{agent}-{number}"
            await put(bank.database, user, agent, seen(45, seed=10 + number + len(agent)))
            await bank.set_profile(user, contribute=True)
    await night(bank)
    (everybody,), (own,), (other,) = [await of_fleet(url, agent) for agent in (SHARED, AGENT, "other")]
    assert {row["version"] for row in (everybody, own, other)} == {1}
    assert len({row["weights"] for row in (everybody, own, other)}) == 3
    assert everybody["decisions"] == own["decisions"] + other["decisions"]
    assert everybody["contributors"] == own["contributors"] == other["contributors"]


async def test_a_head_that_would_serve_the_same_slates_is_not_tried(alone: tuple[Bank, str]):
    bank, url = alone
    for number in range(FEWEST_USERS):
        await log(bank, f"sharer-{number}", seen(45, seed=10 + number))
        await bank.set_profile(f"sharer-{number}", contribute=True, receive=True, learning=True)

    def nothing(profiles: Sequence[Any], seeds: Sequence[int], start: Head) -> list[Head]:
        return [start for _ in profiles]

    much = Demand(decisions=FEWEST_USERS * 9, fresh=20)  # enough for all together, too much for one alone
    assert (await night(bank, nothing, much))[SHARED].outcome == "serves nearly the same slates"
    (row,) = await of_fleet(url)
    assert row["status"] == "retired"


async def test_off_takes_nothing_of_anybody(alone: tuple[Bank, str]):
    bank, url = alone
    for number in range(FEWEST_USERS):
        await log(bank, f"sharer-{number}", seen(45, seed=10 + number))
        await bank.set_profile(f"sharer-{number}", contribute=True)
    await night(bank)
    assert await of_fleet(url)
    async with bank.database.as_worker() as connection:
        assert len(await contributions.given(connection, "choice")) == FEWEST_USERS
        assert await contributions.given(connection, "off") == []
