"""Examples of requests and answers for the API's document, read from ``examples.json``."""

import json
from importlib.resources import files

from pydantic import JsonValue

_READ: dict[str, JsonValue] = json.loads(files("writer").joinpath("examples.json").read_text(encoding="utf-8"))


def examples_of(name: str) -> dict[str, JsonValue]:
    """Returns the examples of the model with this name, for its JSON Schema."""
    return {"examples": _READ[name]}
