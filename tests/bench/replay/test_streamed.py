"""The streams replayed: what is learned in the first runs, and from runs whose plans were dealt by lot."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.replay import streamed
from bench.replay.streamed import FIRST_RUNS, NAMES, WORDS, Streamed
from tests.bench.replay.conftest import TRIALS, USERS

SEEDS = (0, 1)


@pytest.fixture(scope="module")
def replayed() -> Streamed:
    return streamed.replay_stream("support", Path(), SEEDS)


def test_texts_tell_plans_apart_and_nothing_once_the_plans_are_dealt_by_lot(replayed: Streamed):
    assert replayed.first[-1] > 0.5
    assert abs(replayed.shuffled) < 0.1


def test_the_first_runs_are_questions_of_the_whole_stream(replayed: Streamed):
    assert 0 < replayed.early.sum() < FIRST_RUNS * len(SEEDS)
    assert replayed.right.shape == (len(replayed.early), len(NAMES))


def test_each_stream_is_held_against_its_best_order_words_and_chance(replayed: Streamed):
    names = [each.name for each in streamed.aims([replayed])]
    assert len(names) == 6
    assert sum(name.endswith("first place and nDCG@4") for name in names) == 1
    assert "support: choice minus words in common" in names
    assert "support: learned from shuffled runs" in names
    assert "first 10 runs: choice minus words in common" in names


def test_a_recorded_run_counts_once_in_an_interval_and_a_made_up_one_under_each_seed(data: Path, replayed: Streamed):
    recorded = streamed.replay_stream("tau_retail", data, SEEDS)
    runs = recorded.by_run(WORDS)
    assert len(runs) <= USERS * 2 * TRIALS < sum(map(len, runs)) == len(recorded.right)
    assert len(replayed.by_run(WORDS)) == len(replayed.right)
    low, high = replayed.interval
    assert low < replayed.first[-1] < high
    thrice = replace(
        replayed,
        right=np.tile(replayed.right, (3, 1)),
        early=np.tile(replayed.early, 3),
        run=np.tile(replayed.run, 3),
    )
    assert thrice.interval == (low, high)
    assert [each.interval for each in streamed.aims([thrice])] == [each.interval for each in streamed.aims([replayed])]


def test_a_stream_with_one_order_is_replayed_once_however_many_seeds_there_are(data: Path, tmp_path: Path):
    runs = (data / "tau" / "retail" / "runs.jsonl").read_text()
    (tmp_path / "tau" / "telecom").mkdir(parents=True)
    (tmp_path / "tau" / "telecom" / "runs.jsonl").write_text(runs.replace('"started_at":""', '"started_at":"2025"'))
    once, twice = (streamed.replay_stream("tau_telecom", tmp_path, seeds) for seeds in (SEEDS[:1], SEEDS))
    assert len(once.right)
    assert (once.right == twice.right).all()


def test_without_its_data_a_stream_has_no_question(tmp_path: Path):
    skipped = streamed.replay_stream("tau_retail", tmp_path, SEEDS)
    assert skipped.skipped
    assert not len(skipped.right)
    assert streamed.aims([]) == []
