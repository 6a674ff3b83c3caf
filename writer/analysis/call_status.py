"""What the status of a call says of it: the half of the definition of a failed call that looks at no output.

It has a module of its own so that retain, which goes by it, loads nothing that reads outputs; see ``analysis.calls``.
"""


def failed_by_status(status: object) -> bool:
    """Returns whether a call failed as far as its status tells."""
    return status == "error"
