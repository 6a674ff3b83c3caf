"""ScienceWorld as an environment, and the explorer that reads its orders and follows plans that fit."""

import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest

from app.agents.memory import RememberedCase, RetrievedCases, Trace
from app.agents.scienceworld.environment import ScienceWorld, ScienceWorldEnv, shortened
from app.agents.scienceworld.explorer import AVOID, Done, Explorer, View, adapt, closest, essential
from app.agents.world import Briefing, EnvironmentMissing
from app.experiment.run import run_experiment
from tests.app.conftest import Service

needs_scienceworld = pytest.mark.skipif(
    ScienceWorldEnv is None or shutil.which("java") is None,
    reason="ScienceWorld needs Java and casebank[scienceworld]",
)

FIND = "find a(n) {}. First, focus on the thing. Then, move it to the {} box in the {}."
TO_KITCHEN = FIND.format("animal", "red", "kitchen")
PLAN = (
    "teleport to outside",
    "focus on dove egg",
    "pick up dove egg",
    "teleport to kitchen",
    "move dove egg to red box",
)


def case(task: str, plan: tuple[str, ...], outcome: str = "success") -> RememberedCase:
    return RememberedCase("c1", task, plan, outcome)


@needs_scienceworld
async def test_an_experiment_on_scienceworld_runs_to_its_end(service: Service):
    class Short(ScienceWorld):
        families = ("find-non-living-thing",)

    adapter, user = Short(), await service.user()
    size = replace(adapter.size, practice=2, test=1, ks=(0, 4))
    report = await run_experiment(adapter, user.http, size)
    assert not report.crashes
    assert len(report.tested) == len(report.experts) == 1
    assert all(0 < each.steps <= adapter.budget for each in report.sweep[0])


@needs_scienceworld
async def test_the_score_is_scienceworld_s_own_and_its_solution_earns_all_of_it():
    adapter = ScienceWorld()
    async with adapter.environment() as world:
        tasks = await adapter.tasks(world, "find-animal", replace(adapter.size, practice=1, test=1))
        (task,) = tasks.practice
        assert task.id not in {other.id for other in tasks.test}
        (run,) = await adapter.demonstrations(world, [task])
        seen = await world.reset(task)
        assert "teleport to kitchen" in seen.valid
        assert not world.reward
        for action in run.plan:
            await world.step(action)
        assert world.reward == 1
        assert world.done
        assert len(world.traces) == len(run.plan)


async def test_where_there_is_no_java_the_environment_is_missing_by_name(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EnvironmentMissing, match=r"scienceworld|Java"):
        async with ScienceWorld().environment():
            pass


def test_a_plan_is_told_in_the_words_of_the_present_task():
    adapted = adapt(case(TO_KITCHEN, PLAN), FIND.format("animal", "blue", "living room"))
    assert adapted is not None
    differences, plan = adapted
    assert differences == 2
    assert plan[-2:] == ["teleport to living room", "move dove egg to blue box"]


@pytest.mark.parametrize(
    ("remembered", "text"),
    [
        (case(TO_KITCHEN, PLAN), FIND.format("plant", "red", "kitchen")),  # wants what the plan cannot be made into
        (case(TO_KITCHEN, PLAN), FIND.format("toy animal", "red", "kitchen")),
        (case(TO_KITCHEN, (f"{AVOID}focus on axe",), "failure"), TO_KITCHEN),
        (case(TO_KITCHEN, ()), TO_KITCHEN),
    ],
)
def test_a_plan_that_does_not_fit_is_not_followed(remembered: RememberedCase, text: str):
    assert adapt(remembered, text) is None


def test_the_likest_possible_action_is_taken_and_nothing_unlike():
    valid = ["focus on egg dove", "move red box to inventory", "pick up axe", "teleport to kitchen"]
    assert closest("focus on dove egg", valid) == "focus on egg dove"
    assert closest("move dove egg to red box", valid) is None
    assert closest("teleport to outside", valid) is None


def test_a_run_is_remembered_without_its_detours():
    taken = [
        Done("teleport to hallway", "kitchen", 0),
        Done("pick up lamp", "hallway", 0),
        Done("teleport to outside", "hallway", 8),
        Done("focus on dove egg", "outside", 50),
        Done("pick up dove egg", "outside", 0),
        Done("teleport to kitchen", "outside", 0),
        Done("move dove egg to red box", "kitchen", 50),
    ]
    assert essential(taken) == list(PLAN)


def test_an_expert_s_walks_are_shortened():
    walk = ["open door to hallway", "go to hallway", "open door to kitchen", "go to kitchen", "look around"]
    assert shortened([*walk, "focus on lamp", "wait1"]) == ["teleport to kitchen", "focus on lamp"]


class House:
    """Two rooms: the egg lies outside, the box stands in the kitchen; focusing on anything else ends it."""

    def __init__(self) -> None:
        self.place, self.done, self.reward, self.traces, self.held = "kitchen", False, 0.0, [], False

    def look(self, text: str = "", score: int = 0) -> View:
        valid = ["teleport to kitchen", "teleport to outside", "focus on axe", "pick up axe"]
        if self.place == "outside":
            valid += ["focus on dove egg", "pick up dove egg"]
        elif self.held:
            valid += ["move dove egg to red box"]
        return View(text, self.place, valid, score)

    async def step(self, action: str) -> View:
        self.traces.append(Trace("act", action, "", "ok", 0.1))
        verb, _, what = action.partition(" to " if action.startswith("teleport") else " on ")
        self.place = what if verb == "teleport" else self.place
        self.held |= action == "pick up dove egg"
        self.done = action in {"move dove egg to red box", "focus on axe"}
        self.reward = float(action == "move dove egg to red box")
        said = f"You focus on the {what}." if verb == "focus" else "You move it." if verb.startswith("pick") else ""
        return self.look(said, -100 if action == "focus on axe" else 100 if self.done else 0)


async def explore(*cases: RememberedCase, text: str = TO_KITCHEN, seed: str = "1") -> tuple[list[str], list[str], bool]:
    house = House()
    briefing = Briefing(SimpleNamespace(text=text), house.look(), RetrievedCases(cases=cases), seed)
    run = await Explorer(briefing).run(house)
    return [trace.input for trace in house.traces], list(run.plan), run.success


async def test_a_plan_that_fits_is_followed_and_used_up():
    done, plan, success = await explore(case(TO_KITCHEN, PLAN))
    assert done == plan == list(PLAN)
    assert success


async def test_a_plan_whose_things_are_not_here_is_given_up_for_exploring():
    other = (
        "teleport to outside",
        "focus on beaver",
        "pick up beaver",
        "teleport to kitchen",
        "move beaver to red box",
    )
    done, _, _ = await explore(case(TO_KITCHEN, other))
    assert "focus on beaver" not in done
    assert done[0] == "teleport to outside"
    assert len(done) > 1


async def test_what_ended_a_run_badly_is_remembered_and_then_avoided():
    ends = [await explore(seed=str(seed)) for seed in range(12)]
    bad = [plan for _, plan, success in ends if not success]
    assert bad
    assert all(plan == [f"{AVOID}focus on axe"] for plan in bad)
    warned = [await explore(case(TO_KITCHEN, tuple(bad[0]), "failure"), seed=str(seed)) for seed in range(12)]
    assert all(success for _, _, success in warned)
