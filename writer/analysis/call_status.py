"""Decides by a call's status alone whether the call failed; ``analysis.calls`` also reads outputs.

This is a module of its own, because retain uses it and must load no code that reads outputs.
"""


def failed_by_status(status: object) -> bool:
    """Returns whether the status of a call says that the call failed."""
    return status == "error"
