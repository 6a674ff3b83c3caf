"""What is trained, from which logs, and that a training broken off leaves nothing behind."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from policy import features
from policy.examples import Examples
from policy.inputs import CASE
from policy.network import Head
from policy.weights import unpack
from tests.writer.conftest import Bank
from tests.writer.trainings import ENOUGH, everybody, give_serving, learnt, log, quick, rows, seen, statuses
from writer.rights.erase import erase
from writer.training.candidates import HALF, MEMBERS


async def test_a_log_that_tells_something_becomes_a_candidate_that_serves_nobody_yet(bank: Bank, user: str):
    await log(bank, user, seen())
    found = await learnt(bank, user)
    assert (found.outcome, found.version, found.decisions) == ("candidate", 1, ENOUGH)
    (row,) = await rows(bank, user)
    assert (row.status, row.decisions, row.feature_version) == ("candidate", ENOUGH, features.VERSION)
    assert row.blend == pytest.approx(ENOUGH / (ENOUGH + HALF))
    assert row.metrics == found.metrics
    assert row.metrics["held_out"] == pytest.approx(0.2 * ENOUGH, abs=2)
    assert row.metrics["log_loss"] == pytest.approx(row.metrics["log_loss_of_default"] - row.metrics["log_loss_gain"])
    assert (row.verdict, row.promoted_at) == (None, None)
    assert len(unpack(row.weights, row.checksum, features.VERSION).linear) == MEMBERS


async def test_a_candidate_knows_on_which_share_of_the_latest_decisions_it_differs(bank: Bank, user: str):
    await log(bank, user, seen())
    await learnt(bank, user)
    (row,) = await rows(bank, user)
    assert 0 < row.metrics["differs"] <= 1


async def test_a_candidate_that_serves_the_same_slates_is_not_put_on_trial(bank: Bank, user: str):
    def nothing_learned(profiles: Sequence[Examples], _seeds: Sequence[int], start: Head) -> list[Head]:
        return [start] * len(profiles)

    await log(bank, user, seen())
    found = await learnt(bank, user, nothing_learned)
    assert found.outcome == "serves nearly the same slates"
    (row,) = await rows(bank, user)
    assert (row.status, row.metrics["differs"]) == ("rejected", 0.0)


@pytest.mark.parametrize(
    ("weight", "outcome", "stored"),
    [(-10.0, "worse than the default on held-out decisions", ["rejected"]), (float("nan"), "diverged", [])],
)
async def test_a_head_that_predicts_worse_or_nothing_is_not_put_on_trial(
    weight: float, outcome: str, stored: list[str], bank: Bank, user: str
):
    def misled(profiles: Sequence[Examples], _seeds: Sequence[int], start: Head) -> list[Head]:
        linear = start.linear.copy()
        linear[:, CASE.index("vote")] = weight  # the truth is the opposite
        return [replace(start, linear=linear)] * len(profiles)

    await log(bank, user, seen())
    assert (await learnt(bank, user, misled)).outcome == outcome
    assert await statuses(bank, user) == stored


async def test_the_same_seed_and_log_give_the_same_bytes_and_another_seed_gives_others(bank: Bank, user: str):
    weights = []
    for seed in (0, 0, 1):
        await log(bank, user, seen())
        await learnt(bank, user, seed=seed)
        weights += [row.weights for row in await rows(bank, user)]
        await erase(bank.database, user)
    assert weights[0] == weights[1] != weights[2]


async def test_a_training_that_is_broken_off_leaves_what_serves_as_it_was(bank: Bank, user: str):
    await give_serving(bank, user)
    before, calls = await rows(bank, user), []

    def dying(profiles: Sequence[Examples], seeds: Sequence[int], start: Head) -> list[Head]:
        calls.append(len(profiles))
        if len(calls) == 2:  # the measured head is finished, the stored one is not
            raise MemoryError
        return quick(profiles, seeds, start)

    with pytest.raises(MemoryError):
        await learnt(bank, user, dying)
    assert await rows(bank, user) == before
    assert (await learnt(bank, user)).version == 2


async def test_no_weight_of_one_user_depends_on_another_who_shares_nothing(alone: tuple[Bank, str]):
    bank, _ = alone
    weights = []
    for seed in (2, 3):
        await log(bank, "alice", seen(160, seed=seed))
        await log(bank, "bob", seen(160, seed=4))
        outcomes = await everybody(bank)
        assert {each.outcome for each in outcomes.values()} == {"candidate"}
        weights.append([(await rows(bank, user))[0].weights for user in ("alice", "bob")])
        for user in ("alice", "bob"):
            await erase(bank.database, user)
    (alice, bob), (other_alice, same_bob) = weights
    assert alice != other_alice
    assert bob == same_bob
