"""Verdicts follow limits that were named before."""

from math import inf

from examples.experiment.prediction import predictions


def test_a_verdict_is_graded_by_the_limit_that_was_named_before():
    steps = predictions(40)[0]
    assert [steps.verdict(value) for value in (-0.6, -0.3, -0.1, float("nan"))] == [
        "as predicted",
        "weaker than predicted",
        "FALSIFIED",
        "not measured",
    ]
    break_even = next(each for each in predictions(8) if each.key == "break_even")
    assert [break_even.verdict(value) for value in (2, 8, inf)] == [
        "as predicted",
        "weaker than predicted",
        "FALSIFIED",
    ]
