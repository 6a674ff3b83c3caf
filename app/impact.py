"""Did memory help? Read from the log of one agent: what was served beside what would have been, the weeks, the lists.

How the differences are estimated, and what their intervals hold for, stands in ``policy.impact``.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

import numpy as np
from sqlalchemy.ext.asyncio import AsyncConnection

from app.runtime import Runtime
from app.schemas.impact import (
    DifferenceOut,
    ImpactOut,
    ImpactWeekOut,
    LookedAt,
    NeverHelped,
    Other,
    PutRight,
    RangeOut,
    RunsOut,
)
from policy import default
from policy.decide import Policy
from policy.explore import NULL_SHARE
from policy.impact import Difference, difference, known_before
from policy.logged import Floats, Logged, Target
from policy.weights import WeightsError
from retrieval import impact, statistics
from retrieval.database.rows import AnyRow
from retrieval.errors import NotFound
from retrieval.impact import Span
from retrieval.listing import one_profile
from retrieval.ranking.policies import policy_of
from writer.privacy.words import Words
from writer.training import decision_log, training_data
from writer.training.decision_log import LoggedDecision, group_of

MOST, MOST_FOR_POLICIES = 10_000, 500
"""Decisions that are looked at, the newest; of a policy every one must be asked anew, which takes about 2 ms."""
WEEKS = 26
LISTED, LEAST_JUDGED = 10, 5
RARE = 1e-6
"""Stands for the chance of what is never tried out."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Whose memory, and which decisions; ``policies``: whether policies are asked what they would have served."""

    user_sub: str
    authorised_at: datetime
    agent: str
    since: datetime | None = None
    until: datetime | None = None
    policies: bool = True

    def span(self, most: int) -> Span:
        """Returns the newest of the decisions that count."""
        return Span(most, self.since, self.until)


@dataclass(frozen=True, slots=True, eq=False)
class DecisionsSeen:
    """The decisions that had something to tell, the oldest first; when each was taken; and the empty slate."""

    logged: Logged
    at: Floats
    empty: Target
    least_chance: float

    def less_empty(self, before: datetime | None = None) -> Difference:
        """Returns what the slates served before then earned less what empty ones would have."""
        if before is None:
            return difference(self.logged, self.empty, self.least_chance)
        rows = self.at < before.timestamp()
        return difference(self.logged.take(rows), self.empty.take(rows), self.least_chance)


@dataclass(frozen=True, slots=True, eq=False)
class _Read:
    """What the database said."""

    seen: DecisionsSeen
    decisions: list[LoggedDecision]
    last_policy: Policy | None
    weeks: list[datetime]
    asked: Sequence[AnyRow]
    runs: Sequence[AnyRow]
    never_helped: list[NeverHelped]
    put_right: list[PutRight]


async def impact_of(parts: Runtime, asked: Asked) -> ImpactOut:
    """Returns what memory changed; the arithmetic is done aside, so that nobody waits for it but who asked.

    Raises:
        NotFound: there is no such profile.
    """
    async with parts.database.as_user(asked.user_sub, asked.authorised_at) as connection:
        read = await _read(parts, connection, asked)
    return await asyncio.to_thread(_impact, asked, read)


async def _read(parts: Runtime, connection: AsyncConnection, asked: Asked) -> _Read:
    whose, span = (asked.user_sub, asked.agent), asked.span(MOST)
    profile = (await connection.execute(one_profile(*whose))).one_or_none()
    if profile is None:
        raise NotFound("no such profile")
    rows = (await connection.execute(impact.earned(*whose, span))).all()
    weeks = last_weeks(asked.until or datetime.now(UTC))
    useless = impact.never_helped(*whose, span, least=LEAST_JUDGED, limit=LISTED)
    found = (await connection.execute(useless)).mappings().all()
    key = await parts.keyring.find(connection, asked.user_sub) if found else None
    opened = [Words(asked.user_sub, key).opened(row) for row in found] if key is not None else []
    put_right = (await connection.execute(impact.put_right(*whose, limit=LISTED))).all()
    return _Read(
        seen=seen_in(list(reversed(rows)), profile.explore),
        decisions=await _decisions(connection, asked) if asked.policies else [],
        last_policy=await _last_policy(connection, asked) if asked.policies else None,
        weeks=weeks,
        asked=(await connection.execute(impact.asked_by_week(*whose, span, weeks))).all(),
        runs=(await connection.execute(statistics.runs_by_week(*whose, weeks))).all(),
        never_helped=[NeverHelped.model_validate({**row, "case_id": row["id"]}) for row in opened],
        put_right=[_put_right(row) for row in put_right],
    )


def last_weeks(until: datetime) -> list[datetime]:
    """Returns when each of the last weeks began, on a Monday in UTC, the first one first."""
    today = until.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    monday = today - timedelta(days=today.weekday())
    return [monday - timedelta(weeks=before) for before in reversed(range(WEEKS))]


async def _decisions(connection: AsyncConnection, asked: Asked) -> list[LoggedDecision]:
    """Returns the newest rewarded decisions with what each candidate looked like."""
    newest = await decision_log.read(connection, asked.user_sub, asked.agent, MOST_FOR_POLICIES)
    first = asked.since or datetime.min.replace(tzinfo=UTC)
    last = asked.until or datetime.max.replace(tzinfo=UTC)
    return [entry for entry in newest if first <= entry.at < last]


async def _last_policy(connection: AsyncConnection, asked: Asked) -> Policy | None:
    """Returns the newest policy; None: none was ever learned, or it cannot be loaded."""
    row = (await connection.execute(impact.newest_policy(asked.user_sub, asked.agent))).one_or_none()
    try:
        return None if row is None else policy_of(row)
    except WeightsError:
        return None


class EarnedRow(Protocol):
    """A row of ``retrieval.impact.earned``."""

    @property
    def query(self) -> str:
        """As it was asked; empty where words are sealed."""

    @property
    def query_group(self) -> int | None:
        """Of sealed words."""

    @property
    def reward(self) -> float | None:
        """0 to 1; None: missing."""

    @property
    def slate_propensity(self) -> float:
        """Above 0 to 1."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was told."""

    @property
    def created_at(self) -> datetime:
        """When it was taken."""


def seen_in(rows: Sequence[EarnedRow], explore: float) -> DecisionsSeen:
    """Returns the decisions as the estimator takes them; known beforehand are the time and how the query went before.

    The smallest chance of an empty slate is that of a decision that nobody doubts.
    """
    reward = np.array([np.nan if row.reward is None else row.reward for row in rows], dtype=np.float64)
    group = np.array(
        [group_of(row.query) if row.query_group is None else row.query_group for row in rows], dtype=np.int64
    )
    at = np.array([row.created_at.timestamp() for row in rows], dtype=np.float64)
    empty = np.array([row.is_empty for row in rows], dtype=np.float64)
    chance = np.array([row.slate_propensity for row in rows], dtype=np.float64)
    logged = Logged(reward, chance, group, np.zeros(len(rows), np.int64), covariates=known_before(at, group, reward))
    least = min(explore * NULL_SHARE, float(chance[empty > 0].min(initial=1)))
    return DecisionsSeen(logged, at, Target(empty), max(least, RARE))


def _impact(asked: Asked, read: _Read) -> ImpactOut:
    log, at = read.seen.logged, read.seen.at
    rewards = log.reward[np.isfinite(log.reward)]
    return ImpactOut(
        agent=asked.agent,
        looked_at=LookedAt(
            decisions=len(at),
            rewarded=len(rewards),
            first_at=datetime.fromtimestamp(at[0], UTC) if len(at) else None,
            last_at=datetime.fromtimestamp(at[-1], UTC) if len(at) else None,
            most=MOST,
            most_for_policies=MOST_FOR_POLICIES,
        ),
        mean_reward=float(rewards.mean()) if len(rewards) else None,
        differences=[_told(read.seen.less_empty(), "an empty slate"), *(_policies(read) if asked.policies else ())],
        weeks=list(_weeks(read)),
        never_helped=read.never_helped,
        put_right=read.put_right,
    )


def _policies(read: _Read) -> Iterable[DifferenceOut]:
    """Yields what was served less what the default, and the last policy, would have earned."""
    log = training_data.logged(read.decisions)
    yield _told(_less(log, training_data.target(read.decisions, None)), "the default", default.VERSION)
    if read.last_policy is not None:
        policy = read.last_policy
        yield _told(_less(log, training_data.target(read.decisions, policy)), "the last policy", policy.version)


def _less(log: Logged, other: Target) -> Difference:
    """Returns what was served less the other; the rarest of its slates that was served bounds what could have come."""
    seen = log.logged_propensity[other.target_probability > 0]
    return difference(log, other, float(seen.min(initial=1)))


def _told(found: Difference, less: Other, version: str | None = None) -> DifferenceOut:
    helped = found.helped
    return DifferenceOut(
        less=less,
        policy_version=version,
        says="cannot say" if helped is None else "helped" if helped else "did harm",
        sentence=sentence(found),
        reward=_range(found),
        decisions=found.decisions,
        slates=found.other_slates,
        effective=found.effective,
        more=found.more,
    )


def _range(found: Difference) -> RangeOut | None:
    if found.estimate is None or found.low is None or found.high is None:
        return None
    return RangeOut(estimate=found.estimate, low=found.low, high=found.high)


def sentence(found: Difference) -> str:
    """Returns what can be said of a difference, and what it would take to say more."""
    seen = _range(found)
    interval = (
        ""
        if seen is None
        else f"{seen.estimate:+.2f} reward per decision (95 %: {seen.low:+.2f} to {seen.high:+.2f}, for one look)"
    )
    if found.doubt is not None:
        return f"cannot say: {found.doubt}"
    if found.helped is not None:
        return f"{'helped' if found.helped else 'did harm'}: {interval}"
    wanted = (
        "no number of decisions that anybody waits for would tell"
        if found.more is None
        else f"{found.more:,} more rewarded decisions at this rate"
    )
    return f"cannot say yet: {wanted}" + (f"; so far {interval}" if interval else "")


def _weeks(read: _Read) -> Iterable[ImpactWeekOut]:
    asked = {row.week: row for row in read.asked}
    runs = {(row.week, row.shown): row for row in read.runs}
    for week in sorted({*asked, *(number for number, _ in runs)}):
        row, starts = asked.get(week), read.weeks[week - 1]
        ends = starts + timedelta(weeks=1)
        yield ImpactWeekOut(
            starts=starts,
            decisions=row.decisions if row else 0,
            hit_rate=_ratio(row.hits, row.asked) if row else None,
            reuse_rate=_ratio(row.reused, row.said) if row else None,
            mean_tokens=_ratio(row.tokens, row.decisions) if row else None,
            with_memory=_runs(runs.get((week, True))),
            without_memory=_runs(runs.get((week, False))),
            so_far=_range(read.seen.less_empty(ends)) if row else None,
        )


def _runs(row: AnyRow | None) -> RunsOut | None:
    return None if row is None else RunsOut(runs=row.runs, steps=row.steps, errors=row.errors, reward=row.reward)


def _put_right(row: AnyRow) -> PutRight:
    name = str(row.record["procedure_name"])
    return PutRight(
        procedure_id=row.id, version=row.version, name=name, kind=row.kind, uses=row.uses, use_reward=row.use_reward
    )


def _ratio(part: float, whole: float) -> float | None:
    return round(part / whole, 4) if whole else None
