"""The log of decisions as training and the gate read it: numbers only, in the order of time."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cached_property

import numpy as np
from sqlalchemy import Select, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from policy import features
from policy.features import Features
from policy.inputs import Inputs
from policy.slate import Field, Slate, field_of
from retrieval.database.rows import Rows
from retrieval.ranking.logged import slots_of
from retrieval.tables.decisions import decisions
from retrieval.text import folded

MOST_DECISIONS = 5_000
"""The latest decisions that are read; older ones were taken when the bank held other cases."""


@dataclass(frozen=True, eq=False)
class LoggedDecision:
    """One logged decision.

    Attributes:
        group: the query; equal queries are one group.
        slate: indices of the candidates served, by place; a case that is no candidate cannot be.
        usage_known: whether the backend said which cases it used.
        used: for each place whether the backend said that it used this case.
        agreed: for each place how well the run's plan agrees with the case's, 0 to 1; NaN: not known.
        reward: 0 to 1; NaN is missing, never zero.
    """

    group: int
    features: Features
    field: Field
    k: int
    slate: Slate
    usage_known: bool
    used: tuple[bool, ...]
    agreed: tuple[float, ...]
    propensity: float
    arm: str
    version: str
    reward: float
    at: datetime

    @cached_property
    def inputs(self) -> Inputs:
        """The network's inputs for the candidates; computed once for all policies that are compared on the log."""
        return Inputs(self.features)

    @property
    def rewarded(self) -> bool:
        """True: the reward is known."""
        return bool(np.isfinite(self.reward))


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """The columns of ``decisions`` that are read."""

    query: str
    query_group: int | None
    features: bytes
    candidate_groups: Sequence[int]
    candidate_sources: Sequence[int]
    k: int
    min_similarity: float | None
    slate_propensity: float
    arm: str
    policy_version: str
    reward: float | None
    created_at: datetime


@dataclass(frozen=True, slots=True, eq=False)
class _Row(_Columns):
    """Those columns, and of the decision's slots, by place, which candidate each is and what is known of its use.

    The first candidate is 1; all are None of no slot.
    """

    positions: Sequence[int] | None
    used: Sequence[bool | None] | None
    agreed: Sequence[float | None] | None


async def read(
    connection: AsyncConnection, user_sub: str, agent_key: str, most: int = MOST_DECISIONS
) -> list[LoggedDecision]:
    """Returns the latest decisions of the profile that offered candidates, the oldest first."""
    rows = (await connection.execute(entries(user_sub, agent_key, most))).all()
    return [_logged_decision(_Row(*row)) for row in reversed(rows)]


def entries(user_sub: str, agent_key: str, most: int = MOST_DECISIONS) -> Rows:
    """Returns the statement for the latest decisions of this version of the features, each with its slots in order."""
    slots = slots_of(user_sub)
    return (
        select(
            *(decisions.c[column.name] for column in fields(_Columns)), slots.c.positions, slots.c.used, slots.c.agreed
        )
        .outerjoin(slots, decisions.c.id.is_not(None))
        .where(
            decisions.c.user_sub == user_sub,
            decisions.c.agent_key == agent_key,
            decisions.c.feature_version == features.VERSION,
            func.cardinality(decisions.c.candidate_ids) > 0,
        )
        .order_by(decisions.c.id.desc())
        .limit(most)
    )


def rewarded(user_sub: str, agent_key: str) -> Select[int]:
    """Returns the statement that counts the profile's rewarded decisions that there is something to learn from.

    As ``entries`` reads them: of this version of the features, and with candidates.
    """
    return select(func.count()).where(
        decisions.c.user_sub == user_sub,
        decisions.c.agent_key == agent_key,
        decisions.c.feature_version == features.VERSION,
        func.cardinality(decisions.c.candidate_ids) > 0,
        decisions.c.reward.is_not(None),
    )


def _logged_decision(row: _Row) -> LoggedDecision:
    seen = features.unpacked(row.features)
    return LoggedDecision(
        group=group_of(row.query) if row.query_group is None else row.query_group,
        features=seen,
        field=field_of(
            seen,
            np.array(row.candidate_groups, np.int16),
            np.array(row.candidate_sources, np.int16),
            row.min_similarity,
        ),
        k=row.k,
        slate=tuple(position - 1 for position in row.positions or ()),
        usage_known=any(used is not None for used in row.used or ()),
        used=tuple(bool(used) for used in row.used or ()),
        agreed=tuple(np.nan if agreed is None else agreed for agreed in row.agreed or ()),
        propensity=row.slate_propensity,
        arm=row.arm,
        version=row.policy_version,
        reward=np.nan if row.reward is None else row.reward,
        at=row.created_at,
    )


def group_of(query: str) -> int:
    """Returns the number of the query's group: the same for texts that differ in case and white space alone."""
    digest = hashlib.sha256(folded(query).encode()).digest()
    return int.from_bytes(digest[:7], "big")
