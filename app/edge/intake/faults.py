"""Describes the faults of an input in words that may be shown: they repeat no value and no secret."""

from collections.abc import Mapping, Sequence
from typing import Any

from writer.privacy.redact import without_secrets

LONGEST_QUOTED = 1_000
"""Characters of an unknown field's name that are redacted; 200 of the result are shown."""
MOST = 20
_OBJECT = "Input should be a JSON object"
_PLAIN = {"model_attributes_type": _OBJECT, "model_type": _OBJECT, "dict_type": _OBJECT}
"""Messages in place of those in which pydantic speaks of its own types."""


def faults(errors: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Returns the field and the fault of each of a validation's first errors.

    The name of an unknown field is the caller's text, so it is redacted.
    """
    return [
        {
            "field": ".".join(_printable(part) for part in item["loc"]),
            "message": _printable(_PLAIN.get(item["type"], item["msg"])).removeprefix("Value error, "),
        }
        for item in errors[:MOST]
    ]


def _printable(text: object) -> str:
    plain = str(text)[:LONGEST_QUOTED].encode(errors="replace").decode().replace("\x00", "?")
    return without_secrets(plain)[:200]
