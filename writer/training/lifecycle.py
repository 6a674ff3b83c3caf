"""The life of a policy: on trial, promoted, retired, rolled back; every change is noted in the audit."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Select, Update, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.errors import NotFound
from retrieval.schema import policies
from retrieval.search.profile_settings import prior_stands
from writer.audit import Change, note

LIVE = ("candidate", "serving")


@dataclass(frozen=True, slots=True)
class NewPolicy:
    """What is written of a new policy."""

    status: str
    feature_version: int
    weights: bytes
    checksum: bytes
    blend: float
    decisions: int
    metrics: Mapping[str, Any]
    prior_version: int | None = None


def versions(user_sub: str, agent_key: str) -> Select[*tuple[Any, ...]]:
    """Returns the statement for every policy of the profile without its weights, the newest first."""
    shown = [column for column in policies.c if column.name not in {"weights", "checksum", "contributors"}]
    return (
        select(*shown)
        .where(policies.c.user_sub == user_sub, policies.c.agent_key == agent_key)
        .order_by(policies.c.version.desc())
    )


def live(user_sub: str, agent_key: str) -> Select[*tuple[Any, ...]]:
    """Returns the statement for the profile's policies on trial and in service, weights and all.

    ``stands`` tells whether the shared prior that it began at, if any, is still there.
    """
    return select(policies, prior_stands().label("stands")).where(
        policies.c.user_sub == user_sub, policies.c.agent_key == agent_key, policies.c.status.in_(LIVE)
    )


async def add(connection: AsyncConnection, user_sub: str, agent_key: str, new: NewPolicy) -> int:
    """Stores a policy under the next version, which is returned."""
    last = select(func.coalesce(func.max(policies.c.version), 0)).where(
        policies.c.user_sub == user_sub, policies.c.agent_key == agent_key
    )
    version = int((await connection.execute(last)).scalar_one()) + 1
    values = {name: getattr(new, name) for name in NewPolicy.__slots__}
    await connection.execute(insert(policies).values(user_sub=user_sub, agent_key=agent_key, version=version, **values))
    await note(connection, _change((user_sub, agent_key), "add_policy", version, new.status))
    return version


async def set_columns(connection: AsyncConnection, policy: Row[Any], **columns: Mapping[str, Any]) -> None:
    """Puts a verdict or metrics on the policy."""
    await connection.execute(_of_profile(policy).where(policies.c.version == policy.version).values(**columns))


async def set_status(connection: AsyncConnection, policy: Row[Any], status: str) -> None:
    """Gives the policy its new status; a promotion retires what served."""
    if status == "serving":
        retired = _of_profile(policy).where(policies.c.status == "serving")
        await connection.execute(retired.values(status="retired", retired_at=func.now()))
    times = {"promoted_at": func.now()} if status == "serving" else {"retired_at": func.now()}
    mine = _of_profile(policy).where(policies.c.version == policy.version)
    await connection.execute(mine.values(status=status, **times))
    await note(connection, _change((policy.user_sub, policy.agent_key), "decide_policy", policy.version, status))


async def roll_back(connection: AsyncConnection, user_sub: str, agent_key: str) -> int:
    """Takes the serving policy out of service, and any trial with it; the default goes on. Returns its version.

    Raises:
        NotFound: no policy of the profile serves.
    """
    rows = (await connection.execute(live(user_sub, agent_key).with_for_update())).all()
    serving = next((row for row in rows if row.status == "serving"), None)
    if serving is None:
        raise NotFound("no policy of this profile serves")
    for row in rows:
        await set_status(connection, row, "rolled_back")
    return int(serving.version)


def _of_profile(policy: Row[Any]) -> Update:
    return update(policies).where(policies.c.user_sub == policy.user_sub, policies.c.agent_key == policy.agent_key)


def _change(owner: tuple[str, str], action: str, version: int, status: str) -> Change:
    return Change.of(owner, "trainer", action, version=version, status=status)
