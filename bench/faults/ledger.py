"""The acknowledgements of the service, as its clients wrote them down."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A retain that was answered with 202: its case, and the retrieval that the answer joins it to."""

    case_id: str
    retrieval_id: str | None


@dataclass(frozen=True, slots=True)
class Reward:
    """A reward that was answered with 200, and how often it was sent before that."""

    value: float
    sent: int


@dataclass
class Ledger:
    """All answers to clients that the bank must bear out.

    Attributes:
        retains: acknowledged retains by idempotency key.
        rewards: acknowledged rewards by retrieval.
        missing: retrievals that a later answer called unknown.
        requests: number of requests by result: ok, told to come back, no answer.
        unexpected: answers that no outage explains, by path, status and type of problem.
    """

    retains: dict[str, Acknowledged] = field(default_factory=dict)
    rewards: dict[str, Reward] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)
    requests: Counter[str] = field(default_factory=Counter)
    unexpected: Counter[str] = field(default_factory=Counter)

    def forget_requests(self) -> None:
        """Resets the counts of requests and answers; acknowledgements stay."""
        self.requests.clear()
        self.unexpected.clear()
