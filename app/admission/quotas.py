"""How much of what one may ask for, and what is left of it; and how HTTP says both.

Source: draft-ietf-httpapi-ratelimit-headers-10: a list of quota policies, and the service limit of each.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self, get_args

Kind = Literal["reads", "writes"]
Scope = Literal["user", "agent", "session"]
KINDS: tuple[Kind, ...] = get_args(Kind)
SCOPES: tuple[Scope, ...] = get_args(Scope)


@dataclass(frozen=True, slots=True)
class Quota:
    """A bucket of tokens, one for each request.

    Attributes:
        name: of the policy, as ``user-writes``.
        size: tokens of a full bucket: how many requests may come at once.
        every_s: seconds in which one token comes back.
    """

    name: str
    size: int
    every_s: float

    @classmethod
    def per_minute(cls, name: str, requests: int, at_once_s: float) -> Self | None:
        """Returns the quota of so many requests a minute, ``at_once_s`` seconds' worth of them at once; None for 0."""
        if not requests:
            return None
        return cls(name, max(1, round(requests * at_once_s / 60)), 60 / requests)

    @property
    def block(self) -> int:
        """Returns how many tokens a process takes from the shared bucket in one go; one where there are few."""
        return max(1, self.size // 20)

    def bucket(self, name: str) -> bytes:
        """Returns the key of the bucket that somebody of this name has; what the name was cannot be read from it."""
        return hashlib.blake2b(f"{self.name}\n{name}".encode(), digest_size=16).digest()

    @property
    def policy(self) -> str:
        """Returns the item of the RateLimit-Policy field."""
        return f'"{self.name}";q={self.size};w={math.ceil(self.size * self.every_s)}'


@dataclass(frozen=True, slots=True)
class Standing:
    """What is left of a quota: tokens, and the seconds until there are more: all of them, or one where none is left."""

    quota: Quota
    left: int
    more_in_s: float

    @property
    def item(self) -> str:
        """Returns the item of the RateLimit field."""
        return f'"{self.quota.name}";r={self.left};t={math.ceil(self.more_in_s)}'


def fields(standings: Sequence[Standing]) -> dict[str, str]:
    """Returns the header fields that tell where a caller stands; none where nothing is limited."""
    if not standings:
        return {}
    return {
        "RateLimit-Policy": ", ".join(standing.quota.policy for standing in standings),
        "RateLimit": ", ".join(standing.item for standing in standings),
    }
