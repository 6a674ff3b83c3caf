"""The explorer follows plans that fit, and explores where none does."""

from types import SimpleNamespace

from app.demo.memory import RememberedCase, RetrievedCases, Trace
from examples.scienceworld.explorer import Explorer, View
from examples.scienceworld.plans import AVOID
from examples.world import Briefing
from tests.examples.scienceworld.remembered import PLAN, TO_KITCHEN, case


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
