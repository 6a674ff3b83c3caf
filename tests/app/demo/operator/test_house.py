"""A house is drawn by its seed, changes its mind at half time, and has a forger whose runs no check has seen."""

from app.demo.operator.families import CONVENTIONS
from app.demo.operator.house import House

TASKS = 200


def test_the_same_seed_is_the_same_house_and_another_seed_another():
    assert House(3, 50).tasks() == House(3, 50).tasks()
    assert House(3, 50).tasks() != House(4, 50).tasks()
    assert House(3, 1).tasks()[0].text == "Add a last_name column to the users table"


def test_at_half_time_the_house_wants_every_convention_done_the_other_way():
    tasks = House(3, TASKS).tasks()
    for key in CONVENTIONS:
        first = {shape(task.goal) for task in tasks[: TASKS // 2] if task.family == key}
        second = {shape(task.goal) for task in tasks[TASKS // 2 :] if task.family == key}
        assert (len(first), len(second)) == (1, 1), key
        assert first != second, key


def shape(goal: str) -> tuple[str, ...]:
    """Returns what of a goal does not depend on the names in it."""
    counts = tuple(word for word in goal.replace(")", " ").split() if word.isdigit())
    return (*counts, "left" if "left(" in goal else "", "alpha" if "'alpha'" in goal else "")


def test_the_forgers_runs_come_at_once_in_the_words_of_real_tasks_and_nobody_checked_them():
    house = House(3, TASKS)
    ((place, runs),) = house.planted().items()
    assert place == TASKS // 4
    assert len(runs) == TASKS * 0.05
    words = {task.text for task in house.tasks()}
    for run in runs:
        assert run.task in words
        assert (run.success, run.checked) == (True, False)
