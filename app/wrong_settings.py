"""Errors of settings, each named by its environment variable."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the list of all commands, which catches this error, is quicker without it
    from pydantic_core import ErrorDetails

_SHOULD = re.compile(r"^(Input|String) should")
MESSAGES = {
    "int_parsing": "must be a whole number",
    "float_parsing": "must be a number",
    "bool_parsing": "must be true or false",
}
"""Replacements for pydantic's messages, by the type of the error: pydantic describes how it read the text."""


class WrongSettings(Exception):
    """Invalid settings; the message has one line for each, with its name and without its value, which may be secret.

    It is raised before anything is started, so no request meets it. (Pydantic would take a ValueError for its own.)
    """


def variable_of(field: str) -> str:
    """Returns the environment variable that sets a field of the settings."""
    return "DATABASE_URL" if field.upper() == "DATABASE_URL" else f"CASEBANK_{field.upper()}"


def as_lines(errors: Iterable["ErrorDetails"]) -> list[str]:
    """Returns a line for each of pydantic's errors: the variable, the name of the number in it, and what is wrong."""
    lines = []
    for error in errors:
        field, *number = map(str, error["loc"])
        variable = variable_of(field)
        if error["type"] == "value_error":
            message = str(error["ctx"]["error"])
        else:
            message = MESSAGES.get(error["type"]) or _SHOULD.sub("must", error["msg"])
        lines.append(f"{variable}: {' '.join([*number, message])}")
    return lines
