"""tau's cells: a cold bank knows no run of the query's user, and no fit has seen the runs of its queries."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from bench.replay import tau_cells, tau_folds
from bench.replay.tau_cells import COLUMNS
from bench.replay.tau_folds import COLD, PLAN, SAME_TASK, WARM, Domain
from tests.bench.replay.conftest import TASKS


def test_f1_counts_repeats_and_calls_two_plans_without_changes_alike():
    cancel, refund = Counter({"cancel": 2}), Counter({"cancel": 1, "refund": 1})
    assert tau_folds.f1(cancel, refund) == pytest.approx(0.5)
    assert tau_folds.f1(Counter(), Counter()) == 1
    assert tau_folds.f1(cancel, Counter()) == 0


def test_a_fold_keeps_its_queries_out_of_the_fit_and_their_users_out_of_a_cold_bank(domain: Domain):
    folds = list(tau_folds.folds(domain, 0))
    for fold in folds:
        most = tau_folds.RUNS_A_TASK[fold.mode]
        assert max(Counter(domain.runs[run].kind for run in fold.bank).values()) <= most
        assert fold.fit.runs == TASKS * most - len(fold.queries)
        if fold.mode == COLD:
            assert set(domain.user[fold.bank]).isdisjoint(domain.user[fold.queries])
    for mode, most in tau_folds.RUNS_A_TASK.items():
        asked = np.concatenate([fold.queries for fold in folds if fold.mode == mode])
        assert len(set(asked.tolist())) == len(asked) == TASKS * most


def test_every_order_has_a_number_in_every_cell_and_the_same_task_never_helps_where_its_user_is_unknown(data: Path):
    cells = tau_cells.cells(tau_folds.domains(data))
    assert {(cell.mode, cell.reading) for cell in cells} == {
        (COLD, PLAN),
        (WARM, PLAN),
        (WARM, SAME_TASK),
    }
    for cell in cells:
        assert set(cell.reached[0]) == set(COLUMNS)
        assert all(0 <= cell.mean(order) <= 1 for order in COLUMNS)
        assert cell.mean("telling") > 0.5
    assert len(tau_cells.aims(cells)) == len(cells)


def test_a_domain_for_which_the_former_constants_were_not_measured_has_cells_without_an_aim(domain: Domain):
    cells = tau_cells.cells({"telecom": domain})
    assert {cell.former for cell in cells} == {None}
    assert tau_cells.aims(cells) == []
    last = tau_cells.table(cells).columns[-1]
    assert (last.header, set(last.cells)) == ("default-4", {"-"})


def test_without_data_there_is_no_cell(tmp_path: Path):
    assert tau_cells.cells(tau_folds.domains(tmp_path)) == []
