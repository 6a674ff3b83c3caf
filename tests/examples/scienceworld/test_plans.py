"""What a run is remembered by, and whether it fits another task."""

import pytest

from app.demo.memory import RememberedCase
from examples.scienceworld.plans import AVOID, Done, adapt, closest, essential
from tests.examples.scienceworld.remembered import FIND, PLAN, TO_KITCHEN, case


def test_a_plan_is_put_in_the_words_of_the_present_task():
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


def test_the_most_similar_possible_action_is_taken_and_nothing_unlike():
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
