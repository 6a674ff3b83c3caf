"""What the service acknowledged, as its clients wrote it down."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A retain that was answered with 202: its case, and the retrieval that it says it was joined to."""

    case_id: str
    retrieval_id: str | None


@dataclass(frozen=True, slots=True)
class Reward:
    """A reward that was answered with 200, and how often it was sent before that."""

    value: float
    sent: int


@dataclass
class Ledger:
    """Everything that clients were told.

    Attributes:
        retains: by idempotency key.
        rewards: by the retrieval that they are for.
        missing: retrievals of which a later answer said that there is no such.
        requests: how many were sent, by how they went: ok, told to come back, no answer.
        unexpected: answers that no outage explains, by path, status and type of problem.
    """

    retains: dict[str, Acknowledged] = field(default_factory=dict)
    rewards: dict[str, Reward] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)
    requests: Counter[str] = field(default_factory=Counter)
    unexpected: Counter[str] = field(default_factory=Counter)

    def forget_requests(self) -> None:
        """Begins to count anew what was sent and how it was answered; what was acknowledged stays."""
        self.requests.clear()
        self.unexpected.clear()
