"""Who takes part in a fleet: the profiles of an agent that share what is learned, see ``writer.training.fleet``."""

from sqlalchemy import ColumnElement, FromClause, func, literal_column, or_, select

from retrieval.database.rows import Rows
from retrieval.kinds import Fleet
from retrieval.schema import SHARED, policies, profiles


def takes_part(fleet: Fleet, wish: bool | None) -> bool:  # noqa: FBT001 - it is what a profile says
    """Returns whether a profile contributes, or receives, by the service's setting and its own ``wish``, if any."""
    return fleet != "off" and (fleet == "on" if wish is None else wish)


def is_filled(policy: FromClause) -> ColumnElement[bool]:
    """Returns whether a policy has its weights: an erasure empties what the user's numbers helped to train."""
    return policy.c.checksum != literal_column("''::bytea")


def followed(user_sub: str, agent_key: str) -> Rows:
    """Returns the statement for the live policies of the agent's fleet that the profile has not left.

    Beside each stands whether the profile wants to receive.
    """
    shown = ("version", "status", "decisions", "created_at", "promoted_at")
    users = func.coalesce(policies.c.metrics["users"].as_integer(), 0).label("users")
    return (
        select(*(policies.c[name] for name in shown), users, profiles.c.receive)
        .join(profiles, profiles.c.agent_key == policies.c.agent_key)
        .where(
            profiles.c.user_sub == user_sub,
            profiles.c.agent_key == agent_key,
            policies.c.user_sub == SHARED,
            policies.c.status.in_(("candidate", "serving")),
            is_filled(policies),
            or_(profiles.c.fleet_left_at.is_(None), policies.c.created_at > profiles.c.fleet_left_at),
        )
        .order_by(policies.c.version)
    )
