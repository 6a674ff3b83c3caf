"""Chat completions of servers: reads the model's text, its cost, and the answer in it."""

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from pydantic import BaseModel, Field, JsonValue, ValidationError

from app.providers.wire import NoAnswer
from retrieval.errors import ModelMisbehaved, ModelRefused, ModelUnavailable, Tokens
from retrieval.ports import Answer

MOST_BYTES = 1 << 20
"""Most bytes of an answer's body that are read."""
MOST_FAULTS = 8
"""Most faults of its answer that are sent to the model."""
UNSUPPORTED = {"minLength", "maxLength", "minItems", "maxItems", "default", "title"}
"""Keywords that some servers refuse in an answer's schema; the answer is checked for them here."""


class NoCompletion(NoAnswer, ModelUnavailable):
    """The server gave no answer, or wants the request again later."""


class Unusable(Exception):
    """The answer does not have the requested form; the message explains the fault to the model."""


@dataclass(frozen=True, slots=True)
class Completion:
    """Text of the model, and whether it was cut at the longest answer."""

    text: str
    cut: bool


@cache
def form_of(answer: type[BaseModel]) -> dict[str, JsonValue]:
    """Returns the schema of an answer as a request to the model has it: strict, without UNSUPPORTED keywords."""
    name = re.sub(r"\W+", "_", answer.__name__)[:60]
    return {"name": name, "strict": True, "schema": _strict(answer.model_json_schema())}


def _strict(schema: JsonValue) -> JsonValue:
    """Returns the schema without the unsupported keywords, with all properties of objects required and no others."""
    if isinstance(schema, list):
        return [_strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {name: _strict(item) for name, item in schema.items() if name not in UNSUPPORTED}
    if isinstance(properties := schema.get("properties"), dict):  # one of them may have the name of a keyword
        plain["properties"] = {name: _strict(item) for name, item in properties.items()}
        plain |= {"required": list(properties), "additionalProperties": False}
    return plain


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


def read(body: bytes) -> tuple[Completion, Tokens | None]:
    """Returns the model's text, and its cost if the server states it.

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
    cost = None
    with suppress(ValidationError):
        usage = _Usage.model_validate(completion.usage)
        cost = Tokens(usage.prompt_tokens, usage.completion_tokens)
    return Completion(choice.message.content or "", choice.finish_reason == "length"), cost


def parsed(completion: Completion, answer: type[Answer]) -> Answer:
    """Returns the outermost JSON object of the text as the answer, without thoughts, words or fences around it.

    Raises:
        Unusable: there is no JSON object, or it does not have the form.
    """
    text = completion.text.rpartition("</think>")[2]
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        raise Unusable("it was cut off; be shorter" if completion.cut else "there is no JSON object in it")
    try:
        return answer.model_validate_json(text[start : end + 1])
    except ValidationError as error:
        raise Unusable("it was cut off; be shorter" if completion.cut else _faults(error)) from None


def _faults(error: ValidationError) -> str:
    """Returns where the first faults are and of what kind; never what stands there."""
    items = error.errors(include_input=False, include_url=False, include_context=False)[:MOST_FAULTS]
    return "; ".join(f"{'.'.join(map(str, item['loc'])) or 'the object'}: {item['type']}" for item in items)
