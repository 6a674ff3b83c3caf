"""The table of the untrained order: what is said of a domain was not chosen on it; queries without use are counted."""

import numpy as np

from bench.learning import asked, left_out, start, tau
from bench.learning.asked import Hidden
from bench.learning.scores import Scores
from bench.learning.worth import Reading


def scores(**by_arm: float) -> Scores:
    found = Scores()
    for user in ("a", "b"):
        found.add(user, by_arm)
    return found


def test_the_weights_for_a_domain_are_chosen_on_the_others_alone():
    low, high = left_out.GRID[0], left_out.GRID[-1]
    reached = {str(weights): 0.0 for weights in left_out.GRID}
    cells = {
        ("one", "cold", Reading.AGREEMENT): scores(**reached | {str(low): 1.0, "rule": 0.0}),
        ("other", "cold", Reading.AGREEMENT): scores(**reached | {str(high): 0.5, "rule": 0.0}),
    }
    assert dict(left_out.choices(cells, "rule")) == {"one": high, "other": low}


def test_what_the_same_task_loses_counts_and_what_it_gains_does_not():
    safe, bold = left_out.GRID[0], left_out.GRID[-1]
    nothing = {str(weights): -1.0 for weights in left_out.GRID} | {"rule": 0.0}
    cells = {
        ("one", "warm", Reading.AGREEMENT): scores(**nothing | {str(safe): 0.1, str(bold): 0.2}),
        ("one", "warm", Reading.SAME_TASK): scores(**nothing | {str(safe): 0.5, str(bold): -0.2}),
        ("other", "warm", Reading.AGREEMENT): scores(**nothing),
    }
    assert dict(left_out.choices(cells, "rule"))["other"] == safe


def test_the_table_has_every_reading_every_arm_and_plans_that_say_nothing(airline: tau.Domain):
    table = start.Table()
    for count, (mode, query) in enumerate(asked.of_runs(airline, (0,))):
        table.add("airline", mode, query)
        if count == 60:
            break
    assert {cell.hidden for cell in table.cells} == {None, *Hidden}
    shown = [scores for cell, scores in table.cells.items() if cell.hidden is None]
    assert all(set(start.ARMS) < set(found.by_arm) for found in shown)
    assert all(0 <= np.min(found.column(start.SERVED)) <= np.max(found.column(start.SERVED)) <= 1 for found in shown)
    names = [row.name for row in (*table.rows(), *table.averages())]
    assert len(names) == len(set(names))
