"""Errors of bodies that are refused."""

from retrieval.errors import CasebankError


class BodyNotJson(CasebankError):
    """The body's ``Content-Type`` is not JSON's, or the body is compressed; it was not parsed."""


class BodyTooLarge(CasebankError):
    """The body has more than ``max_bytes``."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"a request may have at most {max_bytes} bytes")
        self.max_bytes = max_bytes


class BodyTooComplex(CasebankError):
    """The body has more values, fields or levels than a request may have."""


class BodyTooCostly(CasebankError):
    """The check and redaction of the body took too long; nothing was stored."""


class BodyIncomplete(CasebankError):
    """The body did not arrive whole: its sender went away, or was too slow."""


class Busy(CasebankError):
    """No room in memory, or no side process, became free for the body in time; a later try may succeed."""
