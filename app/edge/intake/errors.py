"""Errors of bodies that are refused.

CasebankError
├── BodyNotJson       its Content-Type is not JSON's, or it is compressed
├── BodyTooLarge      it has more bytes than a request may have
├── BodyTooComplex    it has more values, fields or levels than a request may have
├── BodyTooCostly     its check and redaction took too long
├── BodyIncomplete    its sender went away, or was too slow
└── Busy              too many large bodies are under way; a later try may succeed
"""

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
    """The check of the body took too long; nothing was stored."""


class BodyIncomplete(CasebankError):
    """The body did not arrive whole."""


class Busy(CasebankError):
    """No room in memory, or no side process, became free for the body in time."""
