"""What a training says of a profile."""

from writer.training.result import TrainingResult


def test_a_result_without_metrics_has_an_empty_learning_curve():
    assert list(TrainingResult("ada", "agent", "nothing new").learning_curve) == []


def test_the_learning_curve_is_that_of_the_metrics():
    points = [{"decisions": 10, "log_loss_gain": 0.1}]
    assert TrainingResult("ada", "agent", "candidate", metrics={"learning_curve": points}).learning_curve == points
