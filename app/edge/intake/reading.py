"""A body, from its bytes to what a route takes: counted, parsed and validated; pure, and at home in a side process."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from app.edge.intake.counts import check_counts
from retrieval.telemetry import on_behalf_of

MOST_FAULTS = 20
"""Of an invalid body, that are told."""

Fault = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of a body: the value that the route takes, or why there is none."""

    value: object = None
    faults: Sequence[Fault] = ()


def take(kind: Any, body: bytes, named: Mapping[str, str]) -> Taken:
    """Returns the body as the class ``kind`` has it, or its first faults, which repeat no value.

    ``named`` is the origin of the request that brought it.

    Raises:
        BodyTooComplex: it holds more than is read; it was not parsed.
    """
    parsed = parse(body)
    if parsed.faults:
        return parsed
    try:
        with on_behalf_of(named):
            return Taken(_adapter(kind).validate_python(parsed.value))
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_context=False, include_input=False)[:MOST_FAULTS]
        return Taken(faults=[_fault(each["type"], ("body", *each["loc"]), each["msg"]) for each in wrong])


def parse(body: bytes) -> Taken:
    """Returns the JSON of a body, not validated, or the fault that it is none.

    Raises:
        BodyTooComplex: it holds more than is read; it was not parsed.
    """
    check_counts(body)
    try:
        return Taken(json.loads(body))
    except json.JSONDecodeError as error:
        return Taken(faults=[_fault("json_invalid", ("body", error.pos), f"JSON decode error: {error.msg}")])
    except (ValueError, RecursionError):  # no UTF-8, or an integer of thousands of digits
        return Taken(faults=[_fault("json_invalid", ("body",), "JSON decode error")])


def _fault(kind: str, place: tuple[int | str, ...], message: str) -> Fault:
    return {"type": kind, "loc": place, "msg": message}


@cache  # as many as there are bodies
def _adapter(kind: Any) -> TypeAdapter[object]:
    return TypeAdapter(kind)
