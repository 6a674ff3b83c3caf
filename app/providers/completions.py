"""Chat completions as servers send them: what the model said, what that cost, and the answer in it."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import cache
from typing import cast

import openai
from pydantic import BaseModel, Field, JsonValue, ValidationError

from app.providers.wire import NoAnswer
from retrieval.errors import ModelMisbehaved, ModelRefused, ModelUnavailable, Tokens
from retrieval.ports import Answer

MOST_BYTES = 1 << 20
"""Longest body that is read of an answer."""
MOST_FAULTS = 8
"""How many of its faults a model is told of."""
UNSUPPORTED = {"minLength", "maxLength", "minItems", "maxItems", "default", "title"}
"""Keywords that some servers refuse in the schema of an answer; what they say is checked here, and told in words."""


class NoCompletion(NoAnswer, ModelUnavailable):
    """The server gave no answer, or asked to be asked again."""


class Unusable(Exception):
    """The answer is not of the form that was asked for; the message says to the model what is wrong."""


@dataclass(frozen=True, slots=True)
class Said:
    """What the model said."""

    text: str
    cut: bool


@cache
def form_of(answer: type[BaseModel]) -> dict[str, JsonValue]:
    """Returns the answer's schema as the wire format has it: strict, and without what some servers refuse."""
    strict = cast("JsonValue", openai.pydantic_function_tool(answer)["function"]["parameters"])
    name = re.sub(r"\W+", "_", answer.__name__)[:60]
    return {"name": name, "strict": True, "schema": _plain(strict)}


def _plain(schema: JsonValue) -> JsonValue:
    """Returns the schema without the unsupported keywords; a property may well be called like one."""
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    properties = schema.get("properties")
    names = {name: _plain(item) for name, item in properties.items()} if isinstance(properties, dict) else {}
    rest = {name: _plain(item) for name, item in schema.items() if name not in UNSUPPORTED}
    return rest | {"properties": names} if names else rest


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Completion(BaseModel):
    choices: list[_Choice] = Field(min_length=1)
    usage: object = None


class _Usage(BaseModel):
    prompt_tokens: int = Field(ge=0, le=100_000_000)
    completion_tokens: int = Field(ge=0, le=100_000_000)


async def bounded(chunks: AsyncIterator[bytes]) -> bytes:
    """Returns the whole of a body.

    Raises:
        NoCompletion: it broke off.
        ModelMisbehaved: it is longer than MOST_BYTES.
    """
    body = bytearray()
    try:
        async for chunk in chunks:
            body += chunk
            if len(body) > MOST_BYTES:
                break
    except Exception as error:  # noqa: BLE001 - of whichever HTTP library the client uses
        raise NoCompletion(f"the answer broke off ({type(error).__name__})") from None
    if len(body) > MOST_BYTES:
        raise ModelMisbehaved(f"an answer of more than {MOST_BYTES} bytes")
    return bytes(body)


def read(body: bytes) -> tuple[Said, Tokens | None]:
    """Returns what the model said, and what it cost if the server tells.

    Raises:
        ModelMisbehaved: the body is no chat completion.
        ModelRefused: the model will not answer.
    """
    try:
        completion = _Completion.model_validate_json(body)
    except ValidationError as error:
        raise ModelMisbehaved(f"not a chat completion: {_faults(error)}") from None
    choice = completion.choices[0]
    if choice.message.refusal or choice.finish_reason == "content_filter":
        raise ModelRefused("the model will not answer")
    return Said(choice.message.content or "", choice.finish_reason == "length"), _cost(completion.usage)


def _cost(usage: object) -> Tokens | None:
    try:
        counted = _Usage.model_validate(usage)
    except ValidationError:
        return None
    return Tokens(counted.prompt_tokens, counted.completion_tokens)


def parsed(said: Said, answer: type[Answer]) -> Answer:
    """Returns the answer in the text: its outermost JSON object, whatever a model thinks, says or fences around it.

    Raises:
        Unusable: there is none, or not of that form.
    """
    text = said.text.rpartition("</think>")[2]
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        raise Unusable("it was cut off; be shorter" if said.cut else "there is no JSON object in it")
    try:
        return answer.model_validate_json(text[start : end + 1])
    except ValidationError as error:
        raise Unusable("it was cut off; be shorter" if said.cut else _faults(error)) from None


def _faults(error: ValidationError) -> str:
    """Returns where the first faults are and of what kind; never what stands there."""
    items = error.errors(include_input=False, include_url=False, include_context=False)[:MOST_FAULTS]
    return "; ".join(f"{'.'.join(map(str, item['loc'])) or 'the object'}: {item['type']}" for item in items)
