"""In the world of SQL one statement works for each task, and every error is SQLite's."""

import random

import pytest

from bench.failures.kinds import Kind, Task, draw_tasks, fill
from bench.failures.sql import SqlWorld

WORLD = SqlWorld()


def tasks_of(kind: Kind) -> list[Task]:
    """Returns a task for each way that may work; one for a kind that cannot be done."""
    rng = random.Random(kind.key)
    values = {key: rng.choice(pool) for key, pool in WORLD.values.items()} | dict(rng.choice(WORLD.names))
    return [fill(kind, way, values, kind.wordings[0], "task") for way in kind.working or [None]]


def test_there_are_eight_kinds_and_one_of_them_cannot_be_done():
    assert len(WORLD.kinds) >= 8
    assert [kind.key for kind in WORLD.kinds if not kind.working] == ["closed_books"]


@pytest.mark.parametrize("kind", WORLD.kinds, ids=lambda kind: kind.key)
def test_of_the_ways_to_do_a_task_only_its_own_works(kind: Kind):
    for task in tasks_of(kind):
        done = [title for title, act in task.acts.items() if WORLD.attempt(task, act).done]
        assert done == [task.works] * bool(task.works)


def test_errors_are_those_of_sqlite():
    outputs = [
        WORLD.attempt(task, act).output for kind in WORLD.kinds for task in tasks_of(kind) for act in task.acts.values()
    ]
    for error in (
        "OperationalError: no such column: ",
        "OperationalError: no such table: ",
        "OperationalError: no such function: TO_DATE",
        'OperationalError: near "DUPLICATE": syntax error',
        "IntegrityError: CHECK constraint failed: ",
        "IntegrityError: FOREIGN KEY constraint failed",
        "IntegrityError: the books are closed",
        "AssertionError: the answer [(None,)] is not right",
    ):
        assert any(output.startswith(error) for output in outputs), error


@pytest.mark.parametrize("seed", [1, 2])
def test_one_statement_works_before_and_after_the_rules_change(seed: int):
    tasks = draw_tasks(WORLD, seed, 40)
    for task in tasks:
        done = [title for title, act in task.acts.items() if WORLD.attempt(task, act).done]
        assert done == [task.works] * bool(task.works), task.text
