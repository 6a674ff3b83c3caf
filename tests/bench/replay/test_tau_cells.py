"""tau's cells: a cold bank knows no run of the query's user, and no fit has seen the runs of its queries."""

from collections import Counter
from pathlib import Path

import numpy as np
import orjson
import pytest

from bench.replay import tau_cells
from bench.replay.tau_cells import COLD, ORDERS, SAME_TASK, WARM, Domain

USERS, TASKS, TRIALS = 10, 20, 6


def test_f1_counts_repeats_and_calls_two_plans_without_changes_alike():
    cancel, refund = Counter({"cancel": 2}), Counter({"cancel": 1, "refund": 1})
    assert tau_cells.f1(cancel, refund) == pytest.approx(0.5)
    assert tau_cells.f1(Counter(), Counter()) == 1
    assert tau_cells.f1(cancel, Counter()) == 0


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of made-up runs: two tasks a user, six trials a task, every third of which fails."""
    folder = tmp_path_factory.mktemp("data") / "tau" / "retail"
    folder.mkdir(parents=True)
    tasks = [f"task {number}" for number in range(TASKS)]
    tools = ["cancel_order", "return_order", "change_address", "exchange_item"]
    runs = [
        {
            "user": f"user {number % USERS}",
            "task_id": task,
            "task_text": f"I am user {number % USERS}, please {tools[number % 4].replace('_', ' ')} number {number}",
            "reward": float(trial % 3 > 0),
            "steps": [
                {"tool": "get_order", "input": {"id": number}, "output": "{}", "error": None},
                {
                    "tool": tools[(number + (trial % 3 == 0)) % 4],
                    "input": {"id": number},
                    "output": "ok",
                    "error": None,
                },
            ],
        }
        for number, task in enumerate(tasks)
        for trial in range(TRIALS)
    ]
    gold = [
        {"task_key": task, "gold_actions": [{"name": "get_order"}, {"name": tools[number % 4]}]}
        for number, task in enumerate(tasks)
    ]
    for name, rows in (("runs", runs), ("tasks", gold)):
        (folder / f"{name}.jsonl").write_bytes(b"\n".join(map(orjson.dumps, rows)))
    return folder.parents[1]


@pytest.fixture(scope="module")
def domain(data: Path) -> Domain:
    return tau_cells.read("retail", data)


def test_a_fold_keeps_its_queries_out_of_the_fit_and_their_users_out_of_a_cold_bank(domain: Domain):
    folds = list(tau_cells.folds(domain, 0))
    for fold in folds:
        most = tau_cells.RUNS_A_TASK[fold.mode]
        assert max(Counter(domain.runs[run].kind for run in fold.bank).values()) <= most
        assert fold.fit.runs == TASKS * most - len(fold.queries)
        if fold.mode == COLD:
            assert set(domain.user[fold.bank]).isdisjoint(domain.user[fold.queries])
    for mode, most in tau_cells.RUNS_A_TASK.items():
        asked = np.concatenate([fold.queries for fold in folds if fold.mode == mode])
        assert len(set(asked.tolist())) == len(asked) == TASKS * most


def test_every_order_has_a_number_in_every_cell_and_the_same_task_never_helps_where_its_user_is_unknown(data: Path):
    cells = tau_cells.cells(data)
    assert {(cell.mode, cell.reading) for cell in cells} == {
        (COLD, tau_cells.PLAN),
        (WARM, tau_cells.PLAN),
        (WARM, SAME_TASK),
    }
    for cell in cells:
        assert set(cell.reached[0]) == set(ORDERS)
        assert all(0 <= cell.mean(order) <= 1 for order in ORDERS)
        assert cell.mean("telling") > 0.5
    assert len(tau_cells.aims(cells)) == len(cells)


def test_without_data_there_is_no_cell(tmp_path: Path):
    assert tau_cells.cells(tmp_path) == []
