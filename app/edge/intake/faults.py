"""Describes the faults of an input in words that may be shown: they repeat no value and no secret."""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, TypeAdapter

from writer.privacy.redact import without_secrets
from writer.run import AgentKey, SessionName

LONGEST_QUOTED = 1_000
"""Characters of an unknown field's name, or of a message, that are redacted; fewer of the result are shown."""
LONGEST_NAME, LONGEST_MESSAGE = 200, 500
"""Characters that are shown: of a field's name, and of a message."""
MOST = 20
"""Most faults of an invalid input that its answer names."""
_OBJECT = "Input should be a JSON object"
_PLAIN = {"model_attributes_type": _OBJECT, "model_type": _OBJECT, "dict_type": _OBJECT}
"""Messages in place of those in which pydantic speaks of its own types."""
_NO_CONTROL = "must have no control character"
_PATTERNS = {
    TypeAdapter(AgentKey).json_schema()["pattern"]: _NO_CONTROL,
    TypeAdapter(SessionName).json_schema()["pattern"]: (
        f"{_NO_CONTROL}, and no part between slashes that is empty or only dots"
    ),
    "^[0-9a-f]{64}$": "must be 64 hexadecimal digits in lower case",
}
"""Messages for texts that do not match a pattern, in place of the pattern."""


def faults(errors: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Returns the field and the fault of each of a validation's first errors.

    The name of an unknown field is the caller's text, so it is redacted.
    """
    shown = []
    for error in errors[:MOST]:
        message: str = _PLAIN.get(error["type"], error["msg"])
        if error["type"] == "string_pattern_mismatch":
            message = _PATTERNS.get(message.partition("'")[2].removesuffix("'"), message)
        field = ".".join(_printable(part) for part in error["loc"])
        shown.append({"field": field, "message": _printable(message, LONGEST_MESSAGE).removeprefix("Value error, ")})
    return shown


def with_fields(errors: Sequence[Mapping[str, Any]], model: type[Any]) -> list[Mapping[str, Any]]:
    """Returns the errors of a request; the error of an unknown field names the fields that there are in its place.

    Args:
        errors: errors as FastAPI lists them.
        model: the type that the body was validated as.
    """
    told: list[Mapping[str, Any]] = []
    for error in errors[:MOST]:
        known = fields_at(model, error["loc"][1:-1]) if error["type"] == "extra_forbidden" else []
        told.append({**error, "msg": f"unknown field; the object has {', '.join(known)}"} if known else error)
    return told


def fields_at(annotation: Any, place: Sequence[int | str]) -> list[str]:
    """Returns the sorted names of the fields of the object at a place in a body; none where its fields are not fixed.

    Args:
        annotation: the type of the body, or of the part of it from which the place is counted.
        place: names of fields and indices of lists, as pydantic names the place of an error.
    """
    names = [part for part in place if isinstance(part, str)]
    if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return next(filter(None, (fields_at(each, names) for each in get_args(annotation))), [])
    if names:
        field = annotation.model_fields.get(names[0])
        return fields_at(field.annotation, names[1:]) if field else []
    return sorted(annotation.model_fields) if annotation.model_config.get("extra") == "forbid" else []


def _printable(text: object, most: int = LONGEST_NAME) -> str:
    plain = str(text)[:LONGEST_QUOTED].encode(errors="replace").decode().replace("\x00", "?")
    return without_secrets(plain)[:most]
