"""Why a body is not taken in.

CasebankError
├── BodyNotJson       it does not say that it is JSON
├── BodyTooLarge      it has more bytes than a request may have
├── BodyTooComplex    it has more values, fields or levels than a request may have
├── BodyTooCostly     to check and redact it took more than the time there is for one
├── BodyIncomplete    its sender went away, or was too slow
└── Busy              too many large bodies are under way; a later try may succeed
"""

from retrieval.errors import CasebankError


class BodyNotJson(CasebankError):
    """The body's ``Content-Type`` is another one than JSON's; nothing of it was parsed."""


class BodyTooLarge(CasebankError):
    """The body has more than ``max_bytes``."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"a request may have at most {max_bytes} bytes")
        self.max_bytes = max_bytes


class BodyTooComplex(CasebankError):
    """The body holds more than is read, however few bytes that takes."""


class BodyTooCostly(CasebankError):
    """The body was given up when its time was over; nothing of it was kept."""


class BodyIncomplete(CasebankError):
    """The body did not arrive whole."""


class Busy(CasebankError):
    """No place became free in time."""
