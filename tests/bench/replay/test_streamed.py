"""The streams replayed: what is learned in the first runs, and from runs whose plans were dealt by lot."""

from pathlib import Path

import pytest

from bench.replay import streamed
from bench.replay.streamed import FIRST_RUNS, NAMES, Streamed

SEEDS = (0, 1)


@pytest.fixture(scope="module")
def replayed() -> Streamed:
    return streamed.replay_stream("support", Path(), SEEDS)


def test_texts_tell_plans_apart_and_nothing_once_the_plans_are_dealt_by_lot(replayed: Streamed):
    assert replayed.first[-1] > 0.5
    assert abs(replayed.shuffled) < 0.1


def test_the_first_runs_are_questions_of_the_whole_stream(replayed: Streamed):
    assert 0 < len(replayed.early) < FIRST_RUNS * len(SEEDS)
    assert replayed.early.shape[1] == replayed.right.shape[1] == len(NAMES)


def test_each_stream_is_held_against_its_best_order_words_and_chance(replayed: Streamed):
    names = [each.name for each in streamed.aims([replayed])]
    assert len(names) == 6
    assert sum(name.endswith("first place and nDCG@4") for name in names) == 1
    assert "support: choice minus words in common" in names
    assert "support: learned from shuffled runs" in names
    assert "first 10 runs: choice minus words in common" in names


def test_without_its_data_a_stream_has_no_question(tmp_path: Path):
    skipped = streamed.replay_stream("tau_retail", tmp_path, SEEDS)
    assert skipped.skipped
    assert not len(skipped.right)
    assert streamed.aims([]) == []
