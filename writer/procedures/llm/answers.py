"""Schemas of a language model's answers, and the form in which an answer may be stored."""

from collections.abc import Mapping
from typing import Annotated, Generic, Literal, Self, TypeVar

from pydantic import BaseModel, Field, JsonValue, model_validator

from writer.analysis.placeholders import clean
from writer.nested import parts
from writer.privacy.redact import redact
from writer.run import ProcedureData, ScriptData, Strict

Record = TypeVar("Record", bound=BaseModel)
Trigger = Annotated[str, Field(min_length=1, max_length=500)]
Label = Annotated[str, Field(max_length=100)]


_WITHOUT_DATA = {"no_failure_detected", "nothing_to_follow", "nothing_to_say"}


class _RecordOrNone(Strict):
    """An answer whose status says whether there is a record."""

    status: str
    data: BaseModel | None

    @model_validator(mode="after")
    def _data_as_the_status_says(self) -> Self:
        if (self.data is None) != (self.status in _WITHOUT_DATA):
            raise ValueError(f"data must {'' if self.data else 'not '}be null if the status is {self.status}")
        return self


class Lesson(_RecordOrNone):
    """A learned-procedure record of a fix or of a failure without a fix, or the answer that nothing failed."""

    status: Literal["procedure_learned", "failure_lesson", "no_failure_detected"]
    data: ProcedureData | None


class Script(_RecordOrNone):
    """A script of a run, or the answer that the run has no steps to follow."""

    status: Literal["script", "nothing_to_follow"]
    data: ScriptData | None
    trigger: Trigger
    task_type: Label
    domain: Label


class Revision(_RecordOrNone, Generic[Record]):
    """A record of the same form as the revised record, or the answer that no change is needed."""

    status: Literal["revised", "nothing_to_say"]
    data: Record | None
    trigger: Trigger


_DONE = ("procedure_name", "successful_intervention", "learned_procedure_steps")
"""Fields of a record whose texts an agent follows."""


def instructions_in(shown: Mapping[str, JsonValue]) -> list[str]:
    """Returns the texts of an answer that an agent follows: the trigger and the fields of _DONE."""
    data = shown.get("data")
    fields = data if isinstance(data, dict) else {}
    return texts_in([shown.get("trigger"), *(fields.get(name) for name in _DONE)])


def texts_in(value: JsonValue) -> list[str]:
    """Returns every text in a JSON value, in order, without keys."""
    return [part for part in parts(value) if isinstance(part, str)]


def storable(shown: JsonValue) -> JsonValue:
    """Returns a model's answer in the form in which it is stored: each text in one line, with secrets redacted."""
    return redact(_in_lines(shown))[0]


def _in_lines(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {name: _in_lines(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_in_lines(item) for item in value]
    return clean(value, len(value)) if isinstance(value, str) else value
