"""The tool calls in a conversation of chat completions become the run's tool traces."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from writer.run import FinishedRun

USER = {"role": "user", "content": "Cancel order 7"}


def calling(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def answering(call_id: str, content: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def traces(*turns: dict[str, Any], **more: Any) -> list[tuple[str, Any, Any]]:
    run = FinishedRun.model_validate({"agent": "a", "task": "t", "turns": list(turns), **more})
    return [(trace.tool, trace.input, trace.output) for trace in run.tool_traces]


def test_each_call_stands_beside_the_answer_to_its_id():
    both = calling("1", "get_order", '{"id": 7}')
    both["tool_calls"] += calling("2", "cancel_order", '{"id": 7}')["tool_calls"]
    found = traces(USER, both, answering("2", "cancelled"), answering("1", "pending"))
    assert found == [("get_order", {"id": 7}, "pending"), ("cancel_order", {"id": 7}, "cancelled")]


def test_an_id_that_is_used_again_gets_the_answers_in_their_order():
    first, second = calling("1", "look", "{}"), calling("1", "look", "{}")
    found = traces(first, answering("1", "a"), second, answering("1", "b"))
    assert [output for _, _, output in found] == ["a", "b"]


def test_a_call_without_an_answer_has_no_output_and_an_answer_without_a_call_is_no_call():
    assert traces(calling("1", "look", "{}"), answering("2", "x")) == [("look", {}, None)]


def test_text_in_parts_is_one_text_and_other_parts_stay():
    parts = [{"type": "text", "text": "can"}, {"type": "text", "text": "celled"}]
    image = [{"type": "image_url", "image_url": {"url": "data:"}}]
    found = traces(calling("1", "a", "{}"), answering("1", parts), calling("2", "b", "{}"), answering("2", image))
    assert [output for _, _, output in found] == ["cancelled", image]


@pytest.mark.parametrize("arguments", ["", "{", '{"a": NaN}', "[" * 10_000])
def test_arguments_that_are_no_json_stay_the_text_that_they_are(arguments: str):
    assert traces(calling("1", "look", arguments)) == [("look", arguments, None)]


def test_traces_that_the_backend_made_itself_are_the_runs():
    assert traces(calling("1", "look", "{}"), tool_traces=[{"tool": "seen"}]) == [("seen", None, None)]


@given(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5) | st.none(), max_size=4))
def test_arguments_come_through_as_they_were(arguments: dict[str, Any]):
    assert traces(calling("1", "look", json.dumps(arguments))) == [("look", arguments, None)]
