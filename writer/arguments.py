"""The arguments of a call, which may be JSON in a text."""

from contextlib import suppress

from pydantic import ValidatorFunctionWrapHandler, WrapValidator

from writer.finite import parsed


def _of_a_call(given: object, validated: ValidatorFunctionWrapHandler) -> object:
    """Returns the object of arguments that are JSON in a text, as models write them; other arguments as given."""
    if isinstance(given, str) and given.lstrip().startswith("{"):
        with suppress(ValueError, RecursionError):  # no JSON, too deep, or a lone surrogate: it stays a text
            return validated(parsed(given))
    return validated(given)


AsArguments = WrapValidator(_of_a_call)
"""A validator that parses the arguments of a call if they are JSON in a text."""
