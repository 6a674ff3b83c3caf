"""Advice: failures that are alike vote for what put them right, and the bank's own failures say when to be silent."""

from collections.abc import Sequence

import numpy as np
import pytest

from policy.advice import RIGHT, Failures, advise, threshold
from policy.agreement import agreement

ERROR, OTHER = [1, 2, 3], [11, 12, 13]
CREDIT, VOUCHER = [101, 102], [103, 104]
Row = tuple[Sequence[int], Sequence[int]]


def failures(*rows: Row, proven: Sequence[bool] = (), told: Sequence[int] = (), helped: Sequence[int] = ()) -> Failures:
    """Returns one failure for each pair of error and fix, each of a run of its own."""
    count = len(rows)
    return Failures(
        terms={
            "error": [np.array(error, np.int32) for error, _ in rows],
            "call": [np.array([21, 22], np.int32)] * count,
            "task": [np.array([31, 32], np.int32)] * count,
        },
        tool=np.full(count, 5, np.int32),
        run=np.arange(count, dtype=np.int32),
        fix=[np.array(fix, np.int32) for _, fix in rows],
        proven=np.array(proven or [False] * count, np.bool_),
        told=np.array(told or [0] * count, np.float32),
        helped=np.array(helped or [0] * count, np.float32),
    )


def confidence(past: Failures, error: Sequence[int] = ERROR) -> np.ndarray:
    terms = {"error": error, "call": [21, 22], "task": [31, 32]}
    return advise(past, {name: np.array(each, np.int32) for name, each in terms.items()}, 5).confidence


def test_a_single_equal_failure_is_sure_enough_for_a_young_bank():
    past = failures((ERROR, CREDIT))
    assert confidence(past)[0] >= threshold(past)
    assert threshold(past) == pytest.approx(RIGHT)


def test_an_unlike_failure_says_nothing():
    past = failures((OTHER, CREDIT))
    assert confidence(past)[0] < threshold(past)


def test_failures_that_nothing_put_right_vote_for_silence():
    alone, doubted = failures((ERROR, CREDIT)), failures((ERROR, CREDIT), (ERROR, []), (ERROR, []))
    assert confidence(doubted)[0] < confidence(alone)[0] / 2
    assert confidence(doubted)[1] == 0


def test_the_fix_of_most_failures_is_surest():
    past = failures((ERROR, VOUCHER), (ERROR, CREDIT), (ERROR, CREDIT))
    assert confidence(past).argmax() > 0


def test_a_fix_that_did_not_help_where_it_was_told_loses_confidence():
    once, often = failures((ERROR, CREDIT), told=[4], helped=[4]), failures((ERROR, CREDIT), told=[4], helped=[0])
    assert confidence(often)[0] < confidence(once)[0]


def test_what_came_of_fixes_since_does_not_change_how_right_they_would_have_been():
    rows = [(ERROR, CREDIT if number % 2 else VOUCHER) for number in range(20)]
    assert threshold(failures(*rows, told=[20] * 20, helped=[0] * 20)) == threshold(failures(*rows))


def test_a_fix_in_vain_has_no_vote():
    past = failures((ERROR, VOUCHER), (ERROR, CREDIT), (ERROR, CREDIT))
    terms = {"error": ERROR, "call": [21, 22], "task": [31, 32]}
    asked = {name: np.array(each, np.int32) for name, each in terms.items()}
    left = advise(past, asked, 5, np.array([False, True, True])).confidence
    alone = confidence(failures((ERROR, VOUCHER)))
    assert left[0] > confidence(past)[0]
    assert left.tolist() == pytest.approx([alone[0], 0, 0], rel=0.1)


def test_in_a_bank_with_proof_unproven_failures_count_less():
    past = failures((ERROR, CREDIT), *[(ERROR, VOUCHER)] * 3, proven=[True, False, False, False])
    assert confidence(past).argmax() == 0


@pytest.mark.parametrize(
    ("proven", "fix", "waits"),
    [
        pytest.param(7, VOUCHER, True, id="a fix that no proven run has"),
        pytest.param(7, CREDIT, False, id="a fix that a proven run has"),
        pytest.param(3, VOUCHER, False, id="a bank in which few runs are proven"),
    ],
)
def test_in_a_mostly_proven_bank_an_unproven_fix_waits_until_a_proven_run_has_it(
    proven: int, fix: Sequence[int], *, waits: bool
):
    past = failures(*[(ERROR, CREDIT)] * 9, (ERROR, fix), proven=[place < proven for place in range(10)])
    assert past.waiting.tolist() == [False] * 9 + [waits]


def test_a_bank_whose_fixes_never_repeat_asks_for_more_confidence_than_one_whose_fixes_do():
    steady = failures(*[(ERROR, CREDIT)] * 30)
    unsteady = failures(*[(ERROR, [200 + place, 300 + place]) for place in range(30)])
    assert threshold(steady) < threshold(unsteady)


def test_who_asks_for_less_precision_is_told_more():
    past = failures(*[(ERROR, CREDIT if place % 2 else VOUCHER) for place in range(40)])
    assert threshold(past, 0.3) < threshold(past, 0.9)


def test_fixes_agree_as_the_moves_of_plans_do_though_equal_ones_are_compared_once():
    fixes = [CREDIT, VOUCHER, CREDIT, [101, 103], CREDIT]
    past = failures(*((ERROR, fix) for fix in fixes), (ERROR, []), (ERROR, []))
    assert past.alike == pytest.approx(agreement(past.fix))
