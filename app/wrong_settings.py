"""What is wrong with the settings, in words for whoever set them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the list of all commands, which knows this error, is quicker without it
    from pydantic_core import ErrorDetails

WORDS = {
    "int_parsing": "must be a whole number",
    "float_parsing": "must be a number",
    "bool_parsing": "must be true or false",
}
"""In place of pydantic's own, which are about how a text was read."""


class WrongSettings(Exception):
    """Settings that cannot be; a line for each has its name, and never the value, which may be a secret.

    No request meets it, for nothing starts with them. (A ValueError would be one of pydantic's own.)
    """


def variable_of(field: str) -> str:
    """Returns the variable of the environment that a setting is read from."""
    return "DATABASE_URL" if field.upper() == "DATABASE_URL" else f"CASEBANK_{field.upper()}"


def in_words(errors: Iterable["ErrorDetails"]) -> WrongSettings:
    """Returns the error that says what pydantic found, each under the name that was set."""
    return WrongSettings("\n".join(_line(error) for error in errors))


def _line(error: "ErrorDetails") -> str:
    variable = variable_of(str(error["loc"][0]))
    if error["type"] == "value_error":
        said = str(error["ctx"]["error"]).removeprefix(f"{variable}: ")
    else:
        said = WORDS.get(error["type"]) or error["msg"].replace("Input should be", "must be", 1)
    return f"{variable}: {said}"
