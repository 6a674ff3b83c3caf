"""BabyAI's missions: skipped visibly without their package; with it, the bot's plans do what they say."""

import importlib.util
from pathlib import Path

import pytest

from bench.replay.babyai.missions import LEVELS, Mission, mission
from bench.replay.babyai.world import Trying
from bench.replay.stream import STREAMS

INSTALLED = importlib.util.find_spec("minigrid") is not None
needs_minigrid = pytest.mark.skipif(not INSTALLED, reason="the package minigrid is not installed")
UNLOCKING = ("fetch_key_for", "unlock_way_to", "put_down", "pick_up")


@pytest.mark.skipif(INSTALLED, reason="the package minigrid is installed")
def test_without_minigrid_the_stream_is_skipped_with_the_reason(tmp_path: Path):
    stream = STREAMS["babyai"](0, tmp_path)
    assert stream.runs == ()
    assert "minigrid is not installed" in stream.skipped


def drawn(level: str, seed: int = 0) -> Mission:
    one = next(found for number in range(20) if (found := mission(level, seed + number)) is not None)
    assert one.level == level
    return one


@needs_minigrid
@pytest.mark.parametrize("level", LEVELS)
def test_the_plan_of_a_mission_solves_it_each_time_and_needs_all_of_its_acts(level: str):
    one = drawn(level)
    assert one.solved_by(one.plan)
    assert one.solved_by(one.plan)
    assert not any(one.solved_by((*one.plan[:act], *one.plan[act + 1 :])) for act in range(len(one.plan)))


@needs_minigrid
def test_the_same_level_and_seed_give_the_same_mission():
    assert mission("UnlockPickup", 5) == mission("UnlockPickup", 5)


@needs_minigrid
def test_a_plan_solves_other_missions_of_its_kind_and_none_of_another_kind():
    unlocking, carrying = drawn("UnlockPickup"), drawn("PutNextLocalS6N4")
    assert tuple(call.tool for call in unlocking.plan) == UNLOCKING
    assert drawn("UnlockPickup", 50).solved_by(unlocking.plan)
    assert not unlocking.solved_by(carrying.plan)
    assert not carrying.solved_by(unlocking.plan)


@needs_minigrid
def test_a_mission_begins_again_after_a_plan_that_failed():
    one = drawn("UnlockPickup")
    attempt = Trying(one, one.hands())
    assert attempt.act(one.plan[0]).ok
    refused = attempt.act(one.plan[3])
    assert not refused.ok
    assert "hands are full" in str(refused.output)
    attempt.give_up()
    assert attempt.done == []
    assert all(attempt.act(call).ok for call in one.plan)
    assert attempt.solved
