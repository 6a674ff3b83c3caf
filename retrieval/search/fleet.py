"""Fleets: the profiles of an agent that share learned policies, see ``writer.training``."""

from datetime import datetime
from typing import Protocol

from sqlalchemy import ColumnElement, FromClause, func, literal_column, select

from retrieval.database.rows import Rows
from retrieval.tables.columns import SHARED
from retrieval.tables.kinds import Fleet
from retrieval.tables.policies import policies


class Wishes(Protocol):
    """A profile's own settings for learned policies."""

    @property
    def learning(self) -> bool:
        """True if learned policies may serve it."""

    @property
    def receive(self) -> bool | None:
        """True if its fleet's policies may serve it; None: the service's setting."""


def takes_part(fleet: Fleet, wish: bool | None) -> bool:  # noqa: FBT001 - it is what a profile says
    """Returns whether a profile contributes, or receives, by the service's setting and its own ``wish``, if any."""
    return fleet != "off" and (fleet == "on" if wish is None else wish)


def follows(fleet: Fleet, profile: Wishes, *, has_own: bool) -> bool:
    """Returns whether a profile follows its fleet's policies, but for those that it has left.

    Args:
        fleet: the service's setting.
        profile: the profile's own settings.
        has_own: true if a policy of its own serves it, whose shared prior, if any, stands.
    """
    return profile.learning and not has_own and takes_part(fleet, profile.receive)


def has_left(left_at: datetime | None, made_at: datetime) -> bool:
    """Returns whether a profile that left its fleet's policy ``left_at`` has left the one that was made then."""
    return left_at is not None and made_at <= left_at


def has_not_left(profile: FromClause, policy: FromClause) -> ColumnElement[bool]:
    """Returns, in SQL, whether the profile has not left the fleet's policy, as ``has_left`` has it."""
    return policy.c.created_at > func.coalesce(profile.c.fleet_left_at, literal_column("'-infinity'::timestamptz"))


def is_filled(policy: FromClause) -> ColumnElement[bool]:
    """Returns whether a policy has its weights: an erasure empties what the user's numbers helped to train."""
    return policy.c.checksum != literal_column("''::bytea")


def live_of(agent_key: str) -> Rows:
    """Returns the statement for the policies of the agent's fleet that serve or are on trial, without weights."""
    shown = ("version", "status", "decisions", "created_at", "promoted_at")
    users = func.coalesce(policies.c.metrics["users"].as_integer(), 0).label("users")
    return (
        select(*(policies.c[name] for name in shown), users)
        .where(
            policies.c.user_sub == SHARED,
            policies.c.agent_key == agent_key,
            policies.c.status.in_(("candidate", "serving")),
            is_filled(policies),
        )
        .order_by(policies.c.version)
    )
