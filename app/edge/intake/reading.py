"""Turns a body into the value that a route takes: counts, parses, validates, prepares; pure, fit for a side process."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import GetCoreSchemaHandler, TypeAdapter, ValidationError
from pydantic_core import CoreSchema, core_schema

from app.edge.intake.body import check_counts
from app.edge.intake.faults import MOST
from retrieval.telemetry import on_behalf_of
from writer.storable import NotFinite, parsed

Fault = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RouteInput:
    """The value that a route takes, or the faults of its body."""

    value: object = None
    faults: Sequence[Fault] = ()


@dataclass(frozen=True)
class MadeFrom:
    """A mark on a route's parameter: the body is a ``model``, and the route gets what ``prepare`` makes of it.

    A large body is validated and prepared in a side process (``take``); a small one here, as FastAPI validates it.
    """

    model: type[Any]
    prepare: Callable[[Any], object] | None = None

    def __get_pydantic_core_schema__(self, prepared: type[object], handler: GetCoreSchemaHandler) -> CoreSchema:
        """Returns the model's schema; a value that ``take`` prepared passes as it is."""

        def made(value: object, validate: Callable[[object], object]) -> object:
            if isinstance(value, prepared):
                return value
            valid = validate(value)
            return valid if self.prepare is None else self.prepare(valid)

        return core_schema.no_info_wrap_validator_function(made, handler.generate_schema(self.model))


def take(
    model: Any, body: bytes, request_origin: Mapping[str, str], prepare: Callable[[Any], object] | None = None
) -> RouteInput:
    """Returns the body as the model has it, prepared if need be, or its first faults, which repeat no value.

    Args:
        model: the type that the body is validated as.
        body: the bytes as they came.
        request_origin: see ``retrieval.telemetry.origin``.
        prepare: makes of the validated body the value that the route takes; None: the route takes the body itself.

    Raises:
        BodyTooComplex: the body exceeds a count and was not parsed.
        CasebankError: ``prepare`` raised it.
    """
    whole = parse(body)
    if whole.faults:
        return whole
    try:
        with on_behalf_of(request_origin):
            value = _adapter(model).validate_python(whole.value)
            return RouteInput(value if prepare is None else prepare(value))
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_context=False, include_input=False)[:MOST]
        return RouteInput(faults=[_fault(each["type"], ("body", *each["loc"]), each["msg"]) for each in wrong])
    except ValueError as error:  # from prepare; answered as pydantic answers it for a small body
        return RouteInput(faults=[_fault("value_error", ("body",), f"Value error, {error}")])


def parse(body: bytes) -> RouteInput:
    """Returns the parsed body, not validated, or the fault that it is not JSON, or has a number that is not finite.

    Raises:
        BodyTooComplex: the body exceeds a count and was not parsed.
    """
    check_counts(body)
    try:
        return RouteInput(parsed(body))
    except NotFinite:
        message = "A number is not finite: send null or a text in its place"
        return RouteInput(faults=[_fault("json_invalid", ("body",), message)])
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        return RouteInput(faults=[_fault("json_invalid", ("body",), f"not JSON at {place}: {error.msg}")])
    except (ValueError, RecursionError):  # no UTF-8, or an integer of thousands of digits
        return RouteInput(faults=[_fault("json_invalid", ("body",), "JSON decode error")])


def _fault(kind: str, place: tuple[int | str, ...], message: str) -> Fault:
    return {"type": kind, "loc": place, "msg": message}


@cache  # one for each class of body
def _adapter(model: Any) -> TypeAdapter[object]:
    return TypeAdapter(model)
