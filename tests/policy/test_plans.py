"""Plans at a failed call: the likest runs are those of the same task that met the same error, the newest first."""

from collections.abc import Sequence

import numpy as np

from policy.plans import RunsThatWentWell, plan_likeness

TASK, OTHER_TASK = [1, 2, 3], [11, 12, 13]
ERROR, OTHER_ERROR = [21, 22], [31, 32]
Row = tuple[Sequence[int], Sequence[Sequence[int]]]


def likeness(*rows: Row, proven: Sequence[bool] = ()) -> np.ndarray:
    """Returns the likeness of each run, given as its task and the errors that it met."""

    def numbers(some: Sequence[int]) -> np.ndarray:
        return np.array(some, np.int32)

    past = RunsThatWentWell(
        task=[numbers(task) for task, _ in rows],
        errors=[numbers(error) for _, errors in rows for error in errors],
        met_by=numbers([number for number, (_, errors) in enumerate(rows) for _ in errors]),
        proven=np.array(proven or [False] * len(rows), np.bool_),
    )
    return plan_likeness(past, numbers(TASK), numbers(ERROR))


def test_the_run_of_the_same_task_that_met_the_same_error_is_likest():
    like = likeness((TASK, [ERROR]), (TASK, [OTHER_ERROR]), (OTHER_TASK, [ERROR]))
    assert like.argmax() == 0
    assert like[0] > 0.9
    assert like[1:].max() < 0.6


def test_one_of_the_errors_of_a_run_is_enough():
    like = likeness((TASK, [OTHER_ERROR, ERROR]), (TASK, [OTHER_ERROR]))
    assert like[0] > like[1] + 0.3


def test_a_run_of_the_task_that_met_no_failure_is_half_as_like():
    assert 0.4 < likeness((TASK, []))[0] < 0.6


def test_of_runs_alike_the_newer_is_likest():
    old, new = likeness((TASK, [ERROR]), (TASK, [ERROR]))
    assert old < new


def test_in_a_mostly_proven_bank_unproven_runs_are_like_nothing():
    like = likeness((TASK, [ERROR]), (OTHER_TASK, [ERROR]), (OTHER_TASK, []), proven=[False, True, True])
    assert like[0] == 0 < like[1]


def test_one_proven_run_among_many_does_not_silence_the_others():
    assert likeness((TASK, [ERROR]), (TASK, [ERROR]), (OTHER_TASK, []), proven=[False, False, True])[1] > 0.9


def test_neither_a_bank_without_runs_nor_one_about_something_else_is_like():
    assert likeness().tolist() == []
    assert likeness((OTHER_TASK, [OTHER_ERROR])).tolist() == [0]
