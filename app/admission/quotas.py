"""Quotas of requests, the rest of each, and their header fields.

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
        name: name of the policy, as ``user-writes``.
        size: tokens of a full bucket: requests that may come at once.
        every_s: seconds until one token comes back.
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
        """Returns the number of tokens that a process takes from the shared bucket at a time."""
        return max(1, self.size // 20)

    def bucket(self, name: str) -> bytes:
        """Returns the key of the bucket of this name; the name cannot be read from it."""
        return hashlib.blake2b(f"{self.name}\n{name}".encode(), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Standing:
    """The rest of a quota: tokens, and the seconds until the bucket is full, or until one token if it is empty."""

    quota: Quota
    left: int
    more_in_s: float


def fields(standings: Sequence[Standing]) -> dict[str, str]:
    """Returns the header fields for the rest of the caller's quotas; without quotas an empty mapping."""
    if not standings:
        return {}
    quotas = [each.quota for each in standings]
    policies = [f'"{quota.name}";q={quota.size};w={math.ceil(quota.size * quota.every_s)}' for quota in quotas]
    rests = [f'"{each.quota.name}";r={each.left};t={math.ceil(each.more_in_s)}' for each in standings]
    return {"RateLimit-Policy": ", ".join(policies), "RateLimit": ", ".join(rests)}
