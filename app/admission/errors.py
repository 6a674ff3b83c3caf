"""Errors of requests that are refused for now; no part of the request was done, and a later try may succeed."""

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
    """The user's earlier requests in this process took too long to wait for, or too many wait already."""


class BacklogFull(NotNow):
    """The user has as many cases in the queue as one user may have."""


class QueueFull(NotNow):
    """The queue of all users is too full for another case of this user."""
