"""A task and a plan that solved it."""

from app.demo.memory import RememberedCase

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
