"""What a case costs is compared with the last release: more than the tolerance is a failure, and less is none."""

import json
from pathlib import Path

import pytest

from app import postgres
from bench.cost import AIMS, LAST, NOISE, against, figures, keep, sizes, synthetic
from bench.main import COST, fails
from bench.measure import Measurement
from tests.processes import new_home

SIZES = ("a case: tables", "a case: indexes", "a case: its vector", "a decision")
TIMES = ("a retrieve / its statement", "a retain / its INSERT")


def size(value: float) -> Measurement:
    return Measurement(SIZES[0], value, "bytes", "of a test")


def ratio(value: float) -> Measurement:
    return Measurement(TIMES[0], value, "x", "of a test")


@pytest.mark.parametrize(
    ("now", "worse"),
    [(size(900), False), (size(1_000), False), (size(1_050), False), (size(1_051), True), (size(2_000), True)],
)
def test_a_size_that_grew_by_more_than_the_tolerance_fails(now: Measurement, *, worse: bool):
    compared = against([now], {SIZES[0]: 1_000.0}, tolerance=5)
    assert fails(COST, compared) is worse


def test_a_ratio_of_times_has_more_room_for_noise_than_a_size():
    last, within, beyond = {TIMES[0]: 2.0}, 2 * (1 + 0.05 * NOISE), 2 * (1 + 0.06 * NOISE)
    assert not fails(COST, against([ratio(within)], last, tolerance=5))
    assert fails(COST, against([ratio(beyond)], last, tolerance=5))


def test_what_has_no_last_figure_and_what_another_benchmark_measured_fails_nothing():
    assert not fails(COST, against([size(10.0**9)], {}))
    assert not fails("retain", [Measurement("missed", 2, "x", "", aim=1)])


def test_the_figures_of_the_last_release_are_those_that_are_measured():
    assert figures(LAST).keys() == {*SIZES, *TIMES}
    assert json.loads(LAST.read_text())["release"]


def test_figures_that_are_kept_are_the_next_ones_to_compare_with(tmp_path: Path):
    file = tmp_path / "cost.json"
    keep([size(1_234.567), ratio(2)], "9.9", file)
    assert figures(file) == {SIZES[0]: 1_234.57, TIMES[0]: 2}
    assert not fails(COST, against([size(1_234.567), ratio(2)], figures(file), tolerance=0.01))


def test_the_workload_is_the_same_each_time_and_no_two_of_its_runs_are():
    first, second = ([run.model_dump_json() for run in synthetic(40)] for _ in range(2))
    assert first == second
    assert len(set(first)) == 40


def test_a_fixed_aim_that_is_missed_is_shown_and_neither_fails_the_release_nor_becomes_its_figure(tmp_path: Path):
    (name, aim), file = next(iter(AIMS.items())), tmp_path / "cost.json"
    (row,) = against([Measurement(name, aim + 1, "bytes", "of a test", aim)], figures(LAST))
    assert row.reached is False
    assert not fails(COST, [row])
    keep([row], "9.9", file)
    assert figures(file) == {}


async def test_the_sizes_of_a_real_bank_are_measured_under_the_names_of_the_figures():
    with new_home() as home:
        measured = await sizes(home, runs=20)
        postgres.release(home)
    assert tuple(each.name for each in measured) == (*SIZES, *AIMS)
    assert [each.aim for each in measured[4:]] == [4_000, 2_500]
    assert [each.value for each in measured[4:]] == [measured[0].value + measured[1].value, measured[3].value]
    assert all(each.value > 0 for each in measured)
    assert measured[0].value > measured[2].value  # a vector is a part of its case
