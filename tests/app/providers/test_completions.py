"""Chat completions: the answer in them is found whatever stands around it, and nothing else is taken for one."""

import json
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from app.providers.completions import Completion, Unusable, form_of, parsed, read
from retrieval.errors import ModelMisbehaved, ModelRefused, Tokens


class Verdict(BaseModel):
    """An answer with a field that is called like a keyword."""

    title: str = Field(min_length=1)
    kind: Literal["good", "bad"] = "good"


GOOD = '{"title": "fine", "kind": "good"}'


@pytest.mark.parametrize("text", [GOOD, f"<think>{{no}}</think>{GOOD}", f"```json\n{GOOD}\n```", f"Here: {GOOD} Bye."])
def test_the_outermost_object_is_the_answer(text: str):
    assert parsed(Completion(text, cut=False), Verdict) == Verdict(title="fine")


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (Completion("no", cut=False), "no JSON object"),
        (Completion('{"title": "secret', cut=True), "be shorter"),
        (Completion('{"title": ""}', cut=False), "title: string_too_short"),
        (Completion('{"title": "secret", "kind": "secret"}', cut=False), "kind: literal_error"),
    ],
)
def test_what_is_no_answer_says_what_is_wrong_and_quotes_nothing(answer: Completion, fault: str):
    with pytest.raises(Unusable, match=fault) as caught:
        parsed(answer, Verdict)
    assert "secret" not in str(caught.value)


def completion(**more: Any) -> bytes:
    return json.dumps({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}], **more}).encode()


def test_what_was_said_and_what_it_cost_are_read():
    said, cost = read(completion(usage={"prompt_tokens": 3, "completion_tokens": 2}))
    assert (said, cost) == (Completion("hi", cut=False), Tokens(3, 2))


@pytest.mark.parametrize("usage", [None, "much", {"prompt_tokens": -1, "completion_tokens": 2}])
def test_a_server_that_does_not_count_is_believed_nothing(usage: object):
    assert read(completion(usage=usage))[1] is None


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"<html>", ModelMisbehaved),
        (completion(choices=[]), ModelMisbehaved),
        (completion(choices=[{"message": {"refusal": "never"}}]), ModelRefused),
        (completion(choices=[{"message": {}, "finish_reason": "content_filter"}]), ModelRefused),
    ],
)
def test_what_is_no_completion_or_a_refusal_is_an_error(body: bytes, error: type[Exception]):
    with pytest.raises(error):
        read(body)


def test_the_form_is_strict_and_drops_keywords_but_no_field_of_that_name():
    form: Any = form_of(Verdict)
    assert form["strict"] is True
    assert form["schema"]["required"] == ["title", "kind"]
    assert form["schema"]["properties"] == {
        "title": {"type": "string"},
        "kind": {"enum": ["good", "bad"], "type": "string"},
    }
