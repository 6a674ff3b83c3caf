"""Failure of a call by its status alone: the part of the definition in ``analysis.calls`` that reads no output.

A module of its own, because retain uses it and must load no code that reads outputs.
"""


def failed_by_status(status: object) -> bool:
    """Returns whether the status of a call is the one for failed calls."""
    return status == "error"
