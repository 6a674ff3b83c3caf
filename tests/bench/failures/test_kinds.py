"""The same seed draws the same tasks; the rules change at half time; the text does not tell which way works."""

from collections import defaultdict

from bench.failures.kinds import draw_tasks
from bench.failures.sql import SqlWorld

WORLD = SqlWorld()


def test_the_same_seed_draws_the_same_tasks_and_another_seed_others():
    assert draw_tasks(WORLD, 1, 50) == draw_tasks(WORLD, 1, 50)
    assert draw_tasks(WORLD, 1, 50) != draw_tasks(WORLD, 2, 50)


def test_at_half_time_half_of_the_kinds_want_other_ways():
    tasks = draw_tasks(WORLD, 1, 2000)
    ways: dict[str, list[set[str]]] = defaultdict(lambda: [set(), set()])
    for number, task in enumerate(tasks):
        ways[task.kind][number >= 1000].add(task.works)
    changed = [kind for kind, (before, after) in ways.items() if before != after]
    assert 4 <= len(changed) <= len(WORLD.kinds) // 2
    assert all(len(each) <= 2 for pair in ways.values() for each in pair)


def test_tasks_of_one_wording_want_different_ways():
    tasks = draw_tasks(WORLD, 1, 1000)
    assert any(len({task.works for task in tasks if task.kind == kind.key}) > 1 for kind in WORLD.kinds)
    assert all(title not in task.text for task in tasks for title in task.acts)
