"""Errors of requests that are refused for now; no part of the request was done, and a later try may succeed.

CasebankError
└── NotNow
    ├── RateExceeded    the user, the agent or the session has used up its requests for the moment
    ├── TooManyAtOnce   the user's requests before it took too long to wait for
    ├── BacklogFull     the user has as many cases in the queue as one may have
    └── QueueFull       the queue of all users is nearly full
"""

from app.admission.quotas import Standing
from retrieval.errors import CasebankError


class NotNow(CasebankError):
    """The request is refused for now.

    Attributes:
        retry_s: seconds after which a try may succeed.
        policy: name of the limit that refused the request, as in the RateLimit header fields.
    """

    def __init__(self, message: str, retry_s: float, policy: str) -> None:
        super().__init__(message)
        self.retry_s = retry_s
        self.policy = policy


class RateExceeded(NotNow):
    """The limit of a user, an agent or a session is used up.

    Attributes:
        standing: rest of the limit.
    """

    def __init__(self, message: str, retry_s: float, standing: Standing) -> None:
        super().__init__(message, retry_s, standing.quota.name)
        self.standing = standing


class TooManyAtOnce(NotNow):
    """The user has too many requests under way in this process."""


class BacklogFull(NotNow):
    """Too many of the user's runs wait for the worker."""


class QueueFull(NotNow):
    """Too many runs of all users wait for the workers."""
