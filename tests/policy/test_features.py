"""Features: what they say of candidates, and what they keep on their way through the log."""

import warnings
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy import features
from policy.agreement import Matrix, Moves
from policy.channels import Terms
from policy.fit import fit_of
from policy.orders import ORDERS, mixture
from tests.policy.banks import history, moves, shop, terms
from tests.policy.builders import unhurried, wild

HALF = np.finfo(np.float16)


def candidates(*runs: tuple[str, str], **known: Any) -> features.Candidates:
    """Returns successes with these tasks and plans, an hour apart, proven and equally near unless told otherwise."""
    columns = {"similarity": 0.5, "reward": 1.0, "record": 1.0, "steps": 3.0} | known
    flags = {name: columns.pop(name, name == "proven") for name in ("proven", "failed")}
    count = len(runs)
    return features.Candidates(
        times=np.arange(count) * 3600.0,
        terms=[terms(task) for task, _ in runs],
        moves=[moves(plan) for _, plan in runs],
        **{name: np.array(np.broadcast_to(np.asarray(each, np.float32), count)) for name, each in columns.items()},
        **{name: np.array(np.broadcast_to(np.asarray(each, bool), count)) for name, each in flags.items()},
    )


def ranked(seen: features.Features) -> list[int]:
    return np.argsort(-features.column(seen, "order"), kind="stable").tolist()


def scored(query: Terms, runs: features.Candidates, fit: features.Fit, order: str) -> Matrix:
    """Returns the candidates' scores by an order."""
    comparison = features.comparison_with(query, runs, fit)
    return ORDERS[order](comparison, mixture(comparison, fit.weights))[0]


def recent(runs: features.Candidates, fit: features.Fit) -> Matrix:
    return features.comparison_with(terms("lamp"), runs, fit).near["recent"][0]


def wide(table: np.ndarray) -> features.Features:
    """Returns the numbers as they come back from the log."""
    return features.unpacked(features.packed(table))


def test_every_feature_has_one_name_and_one_column():
    assert len(set(features.NAMES)) == len(features.NAMES)
    assert [features.COLUMN[name] for name in features.NAMES] == list(range(len(features.NAMES)))


def test_the_names_of_this_feature_version_are_these():
    # who adds, drops or moves a feature makes a new version: logs and weights of the old one mean something else
    assert (features.VERSION, len(features.NAMES), crc32(" ".join(features.NAMES).encode())) == (8, 8, 0x309340AE)


@unhurried
@given(wild())
def test_what_is_logged_comes_back_to_the_bit(seen: features.Features):
    back = features.unpacked(features.packed(seen))
    assert back.dtype == np.float32
    assert np.array_equal(back, seen, equal_nan=True)


@unhurried
@given(st.lists(st.floats(width=32), min_size=len(features.NAMES), max_size=len(features.NAMES)))
def test_what_is_served_is_what_is_logged_however_large(numbers: list[float]):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        served = wide(np.array([numbers], dtype=np.float32))
    assert np.array_equal(features.unpacked(features.packed(served)), served, equal_nan=True)
    assert not np.isinf(served).any()
    assert np.array_equal(np.isnan(served[0]), np.isnan(numbers))


@unhurried
@given(st.floats(float(HALF.smallest_normal), float(HALF.max)))
def test_half_precision_keeps_three_digits(number: float):
    table = np.full((1, len(features.NAMES)), number, np.float32)
    assert wide(table) == pytest.approx(table, rel=1e-3)


def test_the_logs_bytes_are_little_endian_halves_row_by_row():
    table = np.arange(2 * len(features.NAMES), dtype=np.float32).reshape(2, -1)
    logged = features.packed(table)
    assert len(logged) == 2 * table.size
    assert np.frombuffer(logged, "<f2").tolist() == table.ravel().tolist()


@pytest.mark.parametrize("fit", [None, fit_of(history(shop(20))), fit_of(history([]))])
def test_no_candidates_are_a_table_without_rows(fit: features.Fit | None):
    found = features.features(terms("where is my lamp"), candidates(), fit)
    assert found.features.shape == (0, len(features.NAMES))
    assert found.agreement.shape == (0, 0)


def test_a_candidates_own_numbers_stand_in_their_columns_and_what_is_missing_is_nan():
    own = {"reward": [0.25, np.nan], "similarity": [np.nan, 0.75], "record": [0.5, 0.625]}
    runs = candidates(("a b", "go"), ("c d", "stop"), **own, steps=[7, 0], proven=[True, False], failed=[False, True])
    seen = features.features(terms("a"), runs, None).features
    own |= {"step_count": [7, 0], "proven": [1, 0], "failed": [0, 1]}
    for name, numbers in own.items():
        assert np.array_equal(features.column(seen, name), np.array(numbers, np.float32), equal_nan=True)
    assert not np.isnan(np.delete(seen, [features.COLUMN[name] for name in own], axis=1)).any()


@pytest.mark.parametrize(("proven", "counted"), [(1, 0), (5, 0), (6, 0), (7, 7), (10, 10)])
def test_a_case_counts_as_proven_only_where_most_are(proven: int, counted: int):
    bank = candidates(*shop(10), proven=np.arange(10) >= 10 - proven)
    for fit in (None, fit_of(bank.history())):
        seen = features.features(terms("where is my lamp"), bank, fit).features
        assert features.column(seen, "proven").sum() == counted


def test_features_come_as_they_come_back_from_the_log():
    seen = features.features(terms("anna writes"), candidates(*shop(30)), fit_of(history(shop(30)))).features
    assert np.array_equal(wide(seen), seen)


def test_the_place_is_that_by_the_order_of_the_fit():
    runs, query = shop(30), terms("anna writes about the lamp that is early")
    for order in ORDERS:
        fit = fit_of(history(runs), order)
        seen = features.features(query, candidates(*runs), fit).features
        assert sorted(features.column(seen, "order").tolist()) == [-place for place in reversed(range(30))]
        assert (np.diff(scored(query, candidates(*runs), fit, order)[ranked(seen)]) <= 0).all()


def test_of_cases_with_equal_scores_the_newest_comes_first_as_in_replay():
    runs = candidates(*shop(6), similarity=np.nan)
    runs.times[:] = [3, 1, 2, 6, 4, 5]
    seen = features.features(terms("lamp"), runs, fit_of(history(shop(20)), "meaning")).features
    assert ranked(seen) == [3, 5, 4, 0, 2, 1]


@pytest.mark.parametrize(("plants", "is_first"), [(1, False), (5, False), (6, True)])
def test_unproven_runs_end_the_quarantine_only_once_they_outnumber_the_proven_ones(plants: int, *, is_first: bool):
    honest = [(f"refund the {thing}", "find refund mail") for thing in ("lamp", "chair", "table", "shelf", "clock")]
    planted = [("refund the vase now", "leak forward")] + [(f"chatter {n}", f"p{n} q{n}") for n in range(plants - 1)]
    bank = candidates(*honest, *planted, proven=np.arange(5 + plants) < 5)
    told = ranked(features.features(terms("refund the vase now"), bank, fit_of(bank.history(), "words")).features)
    assert (told[0] == 5) is is_first


def test_failed_runs_stand_behind_all_that_went_well():
    runs = candidates(("where is my lamp", "go"), ("hello", "stop"), ("my lamp", "go"), failed=[True, False, False])
    for fit in (None, fit_of(history(shop(20)), "words")):
        assert ranked(features.features(terms("where is my lamp"), runs, fit).features)[-1] == 0


@pytest.mark.parametrize(
    ("its_plan", "others_proven", "place"),
    [
        pytest.param("leak forward", 4, -1, id="a plan that no proven run has"),
        pytest.param("refund mail find", 4, 0, id="a plan that proven runs have"),
        pytest.param("leak forward", 2, 0, id="a bank in which few runs are proven"),
    ],
)
def test_an_unproven_repeat_stands_last_where_most_runs_are_proven_and_none_has_such_a_plan(
    its_plan: str, others_proven: int, place: int
):
    honest = [(f"refund the {thing}", "find refund mail") for thing in ("lamp", "chair", "table", "shelf", "clock")]
    near = np.array([0.5] * 5 + [1.0], np.float32)
    proven = [n < others_proven for n in range(6)]
    bank = candidates(*honest, ("refund the vase now", its_plan), similarity=near, proven=proven)
    assert ranked(features.features(terms("refund the vase now"), bank, None).features)[place] == 5


def test_a_candidate_that_no_word_and_no_vector_brings_near_is_behind_one_that_they_do():
    runs = candidates(("hello", "stop"), ("my lamp", "go"), similarity=[np.nan, np.nan])
    assert ranked(features.features(terms("my lamp"), runs, None).features) == [1, 0]


@pytest.mark.parametrize("name", ["words", "rare", "telling", "mixture", "vote"])
def test_the_repeat_of_a_task_is_nearest_by_words_whatever_weighs_them(name: str):
    runs = shop(40)
    scores = scored(terms(runs[7][0]), candidates(*runs), fit_of(history(runs)), name)
    same = [task == runs[7][0] for task, _ in runs] if name != "vote" else [plan == runs[7][1] for _, plan in runs]
    assert same[int(scores.argmax())]


def test_a_vote_rises_with_the_nearness_of_a_plans_other_runs():
    runs = [("lamp", "go"), ("chair", "go"), ("phone", "stop"), ("shirt", "stop")]
    votes = []
    for near in (0.1, 0.5, 0.9):
        seen = features.features(terms("hello"), candidates(*runs, similarity=[0.3, near, 0.3, 0.3]), None).features
        votes.append(features.column(seen, "vote")[0])
    assert votes == sorted(set(votes))


@pytest.mark.parametrize("doubt", [{"proven": [True, False]}, {"record": [0.9, 0.3]}])
def test_of_two_equally_near_plans_the_one_with_less_behind_it_is_voted_for_less(doubt: dict[str, Any]):
    seen = features.features(terms("lamp"), candidates(("lamp", "go"), ("lamp", "stop"), **doubt), None).features
    assert features.column(seen, "vote")[0] > features.column(seen, "vote")[1]


def test_a_run_is_the_less_recent_the_more_of_the_bank_is_newer():
    fit = fit_of(history(shop(20)))  # an hour apart
    assert recent(candidates(*shop(20)), fit) == pytest.approx(-np.log1p(np.arange(19, -1, -1)))


def test_a_case_that_is_newer_than_the_replay_is_as_recent_as_its_newest():
    runs = candidates(*shop(3))
    runs.times[:] = 1e9
    assert recent(runs, fit_of(history(shop(20)))).tolist() == [0, 0, 0]


def test_of_two_plans_for_a_task_the_one_that_worked_again_since_comes_first():
    runs = candidates(("water the roses", "can"), ("water the roses", "hose"))
    assert ranked(features.features(terms("water the roses"), runs, None).features) == [1, 0]
    bank = replace(runs.history(), newest=np.array([7200.0, 3600.0]))
    runs.times[0] = 7200  # the time of the case's newest run
    for fit in (None, fit_of(bank)):
        assert ranked(features.features(terms("water the roses"), runs, fit).features) == [0, 1]


def test_features_do_not_depend_on_the_order_of_the_others():
    runs, query = shop(25), terms("ben writes about the chair that is small")
    rng = np.random.default_rng(3)
    known = {"similarity": rng.uniform(0, 1, 25), "failed": rng.random(25) < 0.2}
    places, fit = rng.permutation(25), fit_of(history(runs))
    shuffled = candidates(*(runs[place] for place in places), **{name: each[places] for name, each in known.items()})
    shuffled.times[:] = places * 3600.0
    one, other = (features.features(query, each, fit).features for each in (candidates(*runs, **known), shuffled))
    numbers = [features.COLUMN[name] for name in features.NAMES if name != "order"]  # which equals share by lot
    assert other[:, numbers] == pytest.approx(one[places][:, numbers], abs=2e-3)
    votes = features.column(other, "vote")[ranked(other)][: (~known["failed"]).sum()]
    assert (np.diff(votes) <= 2e-3).all()


def test_plans_that_agree_are_told_with_the_features():
    found = features.features(terms("lamp"), candidates(("a", "go up"), ("b", "go up"), ("c", "stop")), None)
    assert found.agreement.tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]


def test_a_record_is_between_the_usual_reward_and_what_was_earned_and_nearer_to_that_the_more_often():
    count = np.array([0.0, 1.0, 10.0, 1000.0])
    earned, lost = features.record(count, count), features.record(count, np.zeros(4))
    assert earned[0] == lost[0] == np.float32(features.USUAL_REWARD)
    assert (np.diff(earned) > 0).all()
    assert (np.diff(lost) < 0).all()
    assert (earned[-1], lost[-1]) == (pytest.approx(1, abs=0.01), pytest.approx(0, abs=0.01))
    assert (lost > 0).all()


def test_a_plan_without_moves_agrees_with_no_other():
    nothing: Moves = np.zeros(0, np.int32)
    runs = candidates(("a", ""), ("b", ""), ("c", "go"))
    assert all(np.array_equal(each, nothing) for each in runs.moves[:2])
    assert features.features(terms("a"), runs, None).agreement.tolist() == np.eye(3).tolist()


def test_a_bank_that_was_never_replayed_is_ranked_by_the_first_order():
    runs = candidates(("my lamp", "go"), ("a chair", "stop"), similarity=[0.1, 0.9])
    assert ranked(features.features(terms("my lamp"), runs, None, "words").features) == [0, 1]
    assert ranked(features.features(terms("my lamp"), runs, None, "meaning").features) == [1, 0]
    assert ranked(features.features(terms("my lamp"), runs, fit_of(runs.history()), "meaning").features) == [0, 1]
