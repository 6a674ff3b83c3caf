import pytest

from bench.stages import StageTimes
from retrieval.telemetry import stage


def test_the_parts_of_a_stage_and_the_rest_of_it_are_the_whole():
    before = StageTimes.so_far()
    for _ in range(4):
        with stage("whole"):
            with stage("whole.first"):
                pass
            with stage("whole.second"):
                pass

    times = StageTimes.so_far().since(before)
    shown = list(times.of("whole", {"whole.first": "first", "whole.second": "second"}))

    assert times.counts["whole"] == 4
    assert [each.name for each in shown] == ["whole: first", "whole: second", "whole: the rest"]
    assert sum(each.value for each in shown) == pytest.approx(times.seconds["whole"] / 4 * 1000)


def test_what_was_timed_before_does_not_count():
    with stage("earlier"):
        pass

    assert StageTimes.so_far().since(StageTimes.so_far()).counts["earlier"] == 0
