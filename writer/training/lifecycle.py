"""Stores policies and changes their status: on trial, in service, retired, rolled back; the audit notes each change."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime

from sqlalchemy import Update, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.rows import Rows
from retrieval.errors import NotFound
from retrieval.tables.kinds import PolicyStatus
from retrieval.tables.profiles import policies
from writer.audit import Change, note

TRAINER = "trainer"
"""Actor, in the audit, of the changes that the nightly training makes."""
LIVE = ("candidate", "serving")


@dataclass(frozen=True, slots=True, eq=False)
class PolicyRow:
    """A policy on trial or in service: the columns that training reads."""

    user_sub: str
    agent_key: str
    version: int
    status: PolicyStatus
    weights: bytes
    checksum: bytes
    blend: float
    decisions: int
    metrics: Mapping[str, object]
    verdict: Mapping[str, object] | None
    created_at: datetime


def versions(user_sub: str, agent_key: str) -> Rows:
    """Returns the statement that selects every policy of the profile, without weights, the newest first."""
    shown = [column for column in policies.c if column.name not in {"weights", "checksum"}]
    return (
        select(*shown)
        .where(policies.c.user_sub == user_sub, policies.c.agent_key == agent_key)
        .order_by(policies.c.version.desc())
    )


async def live_policies(
    connection: AsyncConnection, user_sub: str, agent_key: str, *, lock: bool = False
) -> list[PolicyRow]:
    """Returns the profile's policies on trial and in service; with ``lock``, locks them until the transaction ends."""
    statement = (
        select(*(policies.c[column.name] for column in fields(PolicyRow)))
        .where(policies.c.user_sub == user_sub, policies.c.agent_key == agent_key, policies.c.status.in_(LIVE))
        .order_by(policies.c.version)
    )
    return [PolicyRow(*row) for row in await connection.execute(statement.with_for_update() if lock else statement)]


async def add(connection: AsyncConnection, user_sub: str, agent_key: str, new: Mapping[str, object]) -> int:
    """Stores a new policy of the profile, given its columns, and returns its version, the next free number."""
    last = select(func.coalesce(func.max(policies.c.version), 0)).where(
        policies.c.user_sub == user_sub, policies.c.agent_key == agent_key
    )
    version = int((await connection.execute(last)).scalar_one()) + 1
    await connection.execute(insert(policies).values(user_sub=user_sub, agent_key=agent_key, version=version, **new))
    change = Change.of((user_sub, agent_key), TRAINER, "add_policy", version=version, status=new["status"])
    await note(connection, change)
    return version


async def set_columns(connection: AsyncConnection, policy: PolicyRow, **columns: Mapping[str, object]) -> None:
    """Stores a verdict or metrics in the row of a policy."""
    await connection.execute(_of_profile(policy).where(policies.c.version == policy.version).values(**columns))


async def set_status(connection: AsyncConnection, policy: PolicyRow, status: str, *, actor: str = TRAINER) -> None:
    """Sets the status of a policy; if it is promoted to serve, the policy in service before is retired."""
    if status == "serving":
        retired = _of_profile(policy).where(policies.c.status == "serving")
        await connection.execute(retired.values(status="retired", retired_at=func.now()))
    times = {"promoted_at": func.now()} if status == "serving" else {"retired_at": func.now()}
    mine = _of_profile(policy).where(policies.c.version == policy.version)
    await connection.execute(mine.values(status=status, **times))
    owner = policy.user_sub, policy.agent_key
    await note(connection, Change.of(owner, actor, "decide_policy", version=policy.version, status=status))


async def roll_back(connection: AsyncConnection, user_sub: str, agent_key: str, *, actor: str = TRAINER) -> int:
    """Takes the serving policy out of service, for the default, ends any trial, and returns the policy's version."""
    rows = await live_policies(connection, user_sub, agent_key, lock=True)
    serving = next((row for row in rows if row.status == "serving"), None)
    if serving is None:
        raise NotFound("no policy of this profile serves")
    for row in rows:
        await set_status(connection, row, "rolled_back", actor=actor)
    return serving.version


def _of_profile(policy: PolicyRow) -> Update:
    return update(policies).where(policies.c.user_sub == policy.user_sub, policies.c.agent_key == policy.agent_key)
