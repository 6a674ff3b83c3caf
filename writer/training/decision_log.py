"""Reads the log of decisions for training and for the gate, which judges trials: only numbers, in the order of time."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import numpy as np
from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from policy import features
from policy.features import Features
from policy.inputs import Inputs
from policy.slate import Slate, Traits, traits_of
from retrieval.ranking.logged import slots_of
from retrieval.tables.decisions import decisions, rewards
from retrieval.text import folded

MOST_DECISIONS = 5_000
"""Maximum number of decisions that are read, the latest ones; at older decisions the bank had other cases."""
COLUMNS = (
    "query",
    "query_group",
    "features",
    "candidate_groups",
    "candidate_sources",
    "k",
    "min_similarity",
    "slate_propensity",
    "arm",
    "policy_version",
    "reward",
    "created_at",
)
"""Columns of ``decisions`` that are read."""


@dataclass(frozen=True, eq=False)
class LoggedDecision:
    """One logged decision: a retrieval, its candidates and the slate of cases that it served.

    Attributes:
        group: number of the query; equal queries have the same number.
        slate: indices of the candidates that were served, in the order of the slate.
        usage_known: true if the backend named the cases that it used.
        used: one truth value for each place of the slate: the backend named its case as used.
        agreed: agreement of the run's plan with each plan of the slate, in its order, 0 to 1; NaN: unknown.
        reward: reward of the decision, 0 to 1; NaN: it has none.
        rewarded_at: time at which its first reward came; that of the decision if no reward has a time.
    """

    group: int
    features: Features
    traits: Traits
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
    rewarded_at: datetime

    @cached_property
    def inputs(self) -> Inputs:
        """The network's inputs for the candidates; computed once for all policies that are compared on the log."""
        return Inputs(self.features)

    @property
    def rewarded(self) -> bool:
        """True if the decision has a reward."""
        return bool(np.isfinite(self.reward))


async def read(
    connection: AsyncConnection,
    user_sub: str,
    agent_key: str,
    most: int = MOST_DECISIONS,
    within: Sequence[ColumnElement[bool]] = (),
) -> list[LoggedDecision]:
    """Returns the latest decisions of the profile with candidates, at most ``most``, the oldest first.

    ``within`` are further conditions on the decisions.
    """
    slots = slots_of(user_sub)
    first = select(func.min(rewards.c.created_at))
    mine = rewards.c.user_sub == user_sub, rewards.c.decision_id == decisions.c.id
    came = func.coalesce(first.where(*mine).scalar_subquery(), decisions.c.created_at).label("rewarded_at")
    statement = (
        select(*(decisions.c[name] for name in COLUMNS), came, slots.c.positions, slots.c.used, slots.c.agreed)
        .outerjoin(slots, decisions.c.id.is_not(None))
        .where(*_of(user_sub, agent_key), *within)
        .order_by(decisions.c.id.desc())
        .limit(most)
    )
    rows = (await connection.execute(statement)).all()
    log = []
    for row in reversed(rows):
        seen = features.unpacked(row.features)
        groups, sources = np.array(row.candidate_groups, np.int16), np.array(row.candidate_sources, np.int16)
        logged = LoggedDecision(
            group=group_of(row.query) if row.query_group is None else row.query_group,
            features=seen,
            traits=traits_of(seen, groups, sources, row.min_similarity),
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
            rewarded_at=row.rewarded_at,
        )
        log.append(logged)
    return log


def rewarded(user_sub: str, agent_key: str) -> Select[int]:
    """Returns the statement that counts rewarded decisions with candidates and the current version of the features."""
    return select(func.count()).where(*_of(user_sub, agent_key), decisions.c.reward.is_not(None))


def _of(user_sub: str, agent_key: str) -> list[ColumnElement[bool]]:
    """Returns the conditions of the profile's decisions with candidates and the current version of the features."""
    return [
        decisions.c.user_sub == user_sub,
        decisions.c.agent_key == agent_key,
        decisions.c.feature_version == features.VERSION,
        func.cardinality(decisions.c.candidate_ids) > 0,
    ]


def group_of(query: str) -> int:
    """Returns the number of a query; queries that differ only in letter case and white space have the same number."""
    digest = hashlib.sha256(folded(query).encode()).digest()
    return int.from_bytes(digest[:7], "big")
