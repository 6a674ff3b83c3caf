"""Which calls failed: by their status, or by what they answered."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.writer.runs import FAILED, analysed, call
from writer.analysis.calls import calls_in, failed
from writer.analysis.run_counts import failed_by_status


def test_a_status_of_error_is_believed_whatever_the_output():
    analysis = analysed(call("a", 1, None, "error"), call("a", 2, None))
    assert analysis.recovered[0].evidence == "status"


def test_tools_that_always_answer_ok_fail_by_what_they_answer():
    analysis = analysed(call("a", 1, {"error": "bad"}), call("a", 2, {"data": 1}))
    assert (analysis.kind, analysis.recovered[0].evidence) == ("learned_fix", "output")


def test_traces_without_outputs_teach_by_their_statuses_alone():
    bare = [{"tool": "a", "input": 1, "status": "error"}, {"tool": "a", "input": 2, "status": "ok"}]
    assert analysed(*bare).kind == "learned_fix"
    assert analysed({"tool": "a"}, {"tool": "a"}).kind is None


@pytest.mark.parametrize(
    ("status", "output", "expected"),
    [
        ("ok", "done", False),
        ("ok", FAILED, True),
        ("error", "done", True),
        ("error", None, True),
        (None, {"success": False}, True),
        (None, None, False),
    ],
)
def test_a_call_failed_by_its_status_or_by_its_output(status: str | None, output: object, *, expected: bool):
    assert failed(status, output, "a") == expected


@given(
    st.sampled_from(["ok", "error", None]),
    st.sampled_from(["done", FAILED, None, {"error": "x"}, {"error": None}, []]) | st.text(max_size=50),
)
def test_whoever_asks_gets_the_same_answer(status: str | None, output: object):
    (seen,) = calls_in([{"tool": "a", "input": 1, "output": output, "status": status}])
    assert seen.failed == failed(status, output, "a") == (seen.failure is not None)
    assert seen.failed or not failed_by_status(status)


def test_a_trace_of_another_shape_keeps_its_place_and_is_no_failure():
    first, second = calls_in(["Error: no", call("a", 1, FAILED)])
    assert (first.tool, first.failed, second.index, second.failed) == ("", False, 1, True)
