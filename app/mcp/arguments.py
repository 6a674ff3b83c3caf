"""Reads tool arguments that a client sends as JSON in a text."""

import json
from collections.abc import Mapping
from typing import Any

_KINDS: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}
"""Types of Python for the types of JSON Schema that a text can stand for."""


def with_json_read(arguments: object, schema: Mapping[str, Any]) -> object:
    """Returns the arguments of a call with texts replaced by the JSON that the schema asks for in their place.

    A text is replaced only if it parses to the type that the schema names; other values stay as they are. Arguments
    that are null are left out, because models write null for an optional argument.

    Args:
        arguments: the arguments as they came; all of them may be one text.
        schema: JSON Schema of the tool's arguments.
    """
    if isinstance(arguments, str) and arguments.strip() in {"", "null"}:
        return {}
    arguments = _read(arguments, "object")
    if not isinstance(arguments, dict):
        return arguments
    read = {}
    for name, given in arguments.items():
        if given is None:
            continue
        field = schema.get("properties", {}).get(name, {})
        value = _read(given, field.get("type"))
        if isinstance(value, list) and "items" in field:
            value = [_read(item, field["items"].get("type")) for item in value]
        read[name] = value
    return read


def _read(value: object, kind: object) -> object:
    """Returns the JSON in a text if it is of the kind, else the value."""
    if not isinstance(value, str) or not isinstance(kind, str) or kind not in _KINDS:
        return value
    try:
        parsed = json.loads(value)
        parsed = json.loads(parsed) if isinstance(parsed, str) else parsed
    except (ValueError, RecursionError):
        return value
    is_kind = isinstance(parsed, _KINDS[kind]) and (isinstance(parsed, bool) == (kind == "boolean"))
    return parsed if is_kind else value
