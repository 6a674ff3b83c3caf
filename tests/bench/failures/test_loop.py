"""All arms do the same tasks; casebank is asked at the start and at failures, and answers both."""

from bench.failures.kinds import Attempts, Result, Task, draw_tasks
from bench.failures.loop import Arms, Played, play_arms
from bench.failures.main import rows_of
from bench.failures.sql import SqlWorld
from tests.service import User


async def test_casebank_answers_the_agent_of_a_small_world(alice: User):
    user = await alice.backend()
    arms = await play_arms(SqlWorld(), 1, 24, user.http)
    assert not arms.errors
    kinds = {tuple(each.kind for each in arm) for arm in (arms.without, arms.keywords, arms.at_failures, arms.casebank)}
    assert len(kinds) == 1
    assert sum(each.failed for each in arms.casebank) > 5
    assert sum(each.calls for each in arms.casebank) < 0.8 * sum(each.calls for each in arms.without)
    modes = {row[0] for row in await alice.rows("SELECT DISTINCT mode FROM decisions WHERE user_sub = :user_sub")}
    assert {"advice", "hybrid"} <= modes


async def test_an_attempt_is_made_once():
    class Counting(SqlWorld):
        made = 0

        def attempt(self, task: Task, act: str) -> Result:
            self.made += 1
            return super().attempt(task, act)

    world = Counting()
    (task,) = draw_tasks(world, 1, 1)
    attempts = Attempts(world)
    for _ in range(3):
        for act in task.acts.values():
            attempts(task, act)
    assert world.made == len(task.acts)


def test_the_rows_compare_the_arms_task_by_task():
    two, one = Played("k", 2, True, False, 1, 1, 1), Played("k", 1, True, True, 0, 0, 0)
    rows = rows_of("w", [Arms([two, two], [two, two], [two, two], [two, one])] * 3)
    values = {row.name: row.value for row in rows}
    assert values["w, no memory"] == 2
    assert values["w, casebank"] == 1.5
    assert values["w, calls of casebank against keyword memory"] == -0.25
    assert values["w, casebank: failures with advice"] == 1
    assert all(row.reached for row in rows if row.aim is not None)


def test_the_text_at_the_start_is_judged_by_its_median_length_where_it_is_not_empty():
    none, short, long = (Played("k", 1, True, True, 1, 1, 1, tokens) for tokens in (0, 200, 400))
    rows = rows_of("w", [Arms([none] * 4, [none] * 4, [none] * 4, [none, short, long, long])])
    (row,) = [row for row in rows if row.name == "w, casebank: text at the start"]
    assert (row.value, row.reached) == (400, False)
