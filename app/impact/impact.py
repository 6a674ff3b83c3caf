"""Did memory help? Read from the log of one agent: what was served beside what would have been, the weeks, the lists.

How the differences are estimated, and what their intervals hold for, stands in ``policy.impact``.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncConnection

from app.impact.decisions_seen import DecisionsSeen, seen_in
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
from policy.impact import Difference, difference
from policy.logged import Logged, Target
from policy.weights import WeightsError
from retrieval.database.rows import AnyRow
from retrieval.errors import NotFound
from retrieval.pages import impact, statistics
from retrieval.pages.impact import Span
from retrieval.pages.listing import one_profile
from retrieval.ranking.policies import policy_of
from writer.privacy.words import Words
from writer.training import decision_log, training_data
from writer.training.decision_log import LoggedDecision

MOST, MOST_FOR_POLICIES = 10_000, 500
"""Decisions that are looked at, the newest; of a policy every one must be asked anew, which takes about 2 ms."""
WEEKS = 26
LISTED, LEAST_JUDGED = 10, 5


@dataclass(frozen=True, slots=True)
class Asked:
    """Whose memory, and which decisions."""

    user_sub: str
    authorised_at: datetime
    agent: str
    since: datetime | None = None
    until: datetime | None = None

    def span(self, most: int) -> Span:
        """Returns the newest of the decisions that count."""
        return Span(most, self.since, self.until)


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


@dataclass(frozen=True, slots=True)
class Added:
    """What memory added per decision beside empty slates, and how much by the end of each week that had decisions."""

    looked_at: LookedAt
    beside_nothing: DifferenceOut
    so_far: list[tuple[datetime, RangeOut]]


async def added(parts: Runtime, asked: Asked) -> Added:
    """Returns what memory added: the part of an impact that needs the log of decisions alone.

    Raises:
        NotFound: there is no such profile.
    """
    async with parts.database.as_user(asked.user_sub, asked.authorised_at) as connection:
        seen = await _seen(connection, asked)
    return await asyncio.to_thread(_added, seen, last_weeks(asked.until or datetime.now(UTC)))


def _added(seen: DecisionsSeen, weeks: Sequence[datetime]) -> Added:
    ends = [(starts, starts + timedelta(weeks=1)) for starts in weeks]
    asked = [(starts, end) for starts, end in ends if seen.has_any(starts, end)]
    so_far = [(starts, _range(seen.less_empty(end))) for starts, end in asked]
    return Added(
        looked_at=_looked_at(seen),
        beside_nothing=_told(seen.less_empty(), "an empty slate"),
        so_far=[(starts, found) for starts, found in so_far if found is not None],
    )


async def _seen(connection: AsyncConnection, asked: Asked) -> DecisionsSeen:
    profile = (await connection.execute(one_profile(asked.user_sub, asked.agent))).one_or_none()
    if profile is None:
        raise NotFound("no such profile")
    rows = (await connection.execute(impact.earned(asked.user_sub, asked.agent, asked.span(MOST)))).all()
    return seen_in(list(reversed(rows)), profile.explore)


async def _read(parts: Runtime, connection: AsyncConnection, asked: Asked) -> _Read:
    whose, span = (asked.user_sub, asked.agent), asked.span(MOST)
    seen = await _seen(connection, asked)
    weeks = last_weeks(asked.until or datetime.now(UTC))
    useless = impact.never_helped(*whose, span, least=LEAST_JUDGED, limit=LISTED)
    found = (await connection.execute(useless)).mappings().all()
    key = await parts.keyring.find(connection, asked.user_sub) if found else None
    opened = [Words(asked.user_sub, key).opened(row) for row in found] if key is not None else []
    put_right = (await connection.execute(impact.put_right(*whose, limit=LISTED))).all()
    return _Read(
        seen=seen,
        decisions=await _decisions(connection, asked),
        last_policy=await _last_policy(connection, asked),
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


def _impact(asked: Asked, read: _Read) -> ImpactOut:
    rewards = read.seen.rewards
    return ImpactOut(
        agent=asked.agent,
        looked_at=_looked_at(read.seen),
        mean_reward=float(rewards.mean()) if len(rewards) else None,
        differences=[_told(read.seen.less_empty(), "an empty slate"), *_policies(read)],
        weeks=list(_weeks(read)),
        never_helped=read.never_helped,
        put_right=read.put_right,
    )


def _looked_at(seen: DecisionsSeen) -> LookedAt:
    at = seen.at
    return LookedAt(
        decisions=len(at),
        rewarded=len(seen.rewards),
        first_at=datetime.fromtimestamp(at[0], UTC) if len(at) else None,
        last_at=datetime.fromtimestamp(at[-1], UTC) if len(at) else None,
        most=MOST,
        most_for_policies=MOST_FOR_POLICIES,
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
