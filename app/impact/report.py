"""The impact of memory, from the log of one agent: differences to other slates, weekly numbers, cases and procedures.

``policy.reward_difference`` estimates the differences and their intervals.
"""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import func
from sqlalchemy.ext.asyncio import AsyncConnection

from app.impact.decisions_seen import RARE, DecisionsSeen, seen_in
from app.runtime import Runtime
from app.schemas.impact import (
    ImpactOut,
    ImpactWeekOut,
    LookedAt,
    NeverHelped,
    Other,
    PutRight,
    RangeOut,
    RewardDifferenceOut,
    RunMeansOut,
)
from app.schemas.responses import response_of
from policy.decide import REPLAYED
from policy.logged import Logged, Target
from policy.reward_difference import RewardDifference, difference
from policy.weights import WeightsError
from retrieval.database.rows import AnyRow
from retrieval.pages import impact, statistics
from retrieval.pages.listing import Span, known_profile
from retrieval.ranking.policies import policy_of
from retrieval.search.bank import failed
from retrieval.tables.cases import cases
from retrieval.tables.decisions import decisions
from writer.training import decision_log, training_data

MOST, MOST_FOR_POLICIES = 10_000, 500
"""Maximum number of decisions used, the newest first; fewer for a policy, whose slates are recomputed in 2 ms each."""
WEEKS = 26
LISTED, LEAST_JUDGED = 10, 5
SHOWN, NOT_SHOWN = "with a case", "without a case"
LEAST_TO_COMPARE = 10
"""Least number of runs with a case, and of runs without a case, for a comparison of their means."""


@dataclass(frozen=True, slots=True)
class ImpactRequest:
    """The user, the agent, and the time span of the decisions."""

    user_sub: str
    authorised_at: datetime
    agent: str
    since: datetime | None = None
    until: datetime | None = None

    def span(self, most: int) -> Span:
        """Returns a query's limits: the request's first and last time, and at most its newest ``most`` decisions."""
        return Span(most, self.since, self.until)


async def impact_of(parts: Runtime, request: ImpactRequest) -> ImpactOut:
    """Returns the impact of memory; the arithmetic runs in a thread, so that it does not block other requests.

    Raises:
        NotFound: the user has no such profile.
    """
    whose, span = (request.user_sub, request.agent), request.span(MOST)
    weeks, last_policy = last_weeks(datetime.now(UTC), request.until), None
    async with parts.database.as_user(request.user_sub, request.authorised_at) as connection:
        seen = await _seen(connection, request)
        useless = impact.never_helped(*whose, span, least=LEAST_JUDGED, limit=LISTED)
        rows = (await connection.execute(useless)).mappings().all()
        words = await parts.keyring.find_for_page(connection, request.user_sub) if rows else None
        never_helped = [] if words is None else [words.opened(row) for row in rows]
        put_right = (await connection.execute(impact.put_right(*whose, limit=LISTED))).all()
        newest_policy = (await connection.execute(impact.newest_policy(*whose))).one_or_none()
        with suppress(WeightsError):  # a policy that cannot be loaded is left out
            last_policy = None if newest_policy is None else policy_of(newest_policy)
        logged = await decision_log.read(connection, *whose, MOST_FOR_POLICIES, span.holds(decisions.c.created_at))
        asked = (await connection.execute(impact.asked_by_week(*whose, span, weeks))).all()
        ended = statistics.runs_by_week(*whose, weeks).where(*span.holds(cases.c.created_at))
        runs = (await connection.execute(ended)).all()

    def computed() -> ImpactOut:
        rewards, log = seen.rewards, training_data.logged(logged)
        to_default = _less(log, training_data.target(logged, None))
        differences = [_compared(seen.less_empty(), "an empty slate"), _compared(to_default, "the default", REPLAYED)]
        if last_policy is not None:
            to_last = _less(log, training_data.target(logged, last_policy))
            differences.append(_compared(to_last, "the last policy", last_policy.version))
        return ImpactOut(
            agent=request.agent,
            looked_at=_looked_at(seen),
            mean_reward=float(rewards.mean()) if len(rewards) else None,
            differences=differences,
            weeks=list(_weeks(seen, weeks, asked, runs)),
            never_helped=[NeverHelped.model_validate({**row, "case_id": row["id"]}) for row in never_helped],
            put_right=[
                response_of(PutRight, row, procedure_id=row.id, name=str(row.record["procedure_name"]))
                for row in put_right
            ],
        )

    return await asyncio.to_thread(computed)


@dataclass(frozen=True, slots=True)
class SoFar:
    """Reward added by memory per decision, over the rewarded decisions up to the end of a week."""

    starts: datetime
    reward: RangeOut
    decisions: int


@dataclass(frozen=True, slots=True)
class Added:
    """Reward added by memory per decision, compared with empty slates: in all, and up to the end of each week."""

    looked_at: LookedAt
    beside_nothing: RewardDifferenceOut
    so_far: list[SoFar]


async def added(parts: Runtime, request: ImpactRequest) -> Added:
    """Returns the reward added by memory: the part of an impact that needs only the log of decisions.

    Raises:
        NotFound: the user has no such profile.
    """
    async with parts.database.as_user(request.user_sub, request.authorised_at) as connection:
        seen = await _seen(connection, request)

    def computed() -> Added:
        weeks = last_weeks(datetime.now(UTC), request.until)
        ends = [(starts, starts + timedelta(weeks=1)) for starts in weeks]
        known = [(starts, seen.less_empty(end)) for starts, end in ends if seen.has_any(starts, end)]
        so_far = [(starts, _range(result), result.decisions) for starts, result in known]
        return Added(
            looked_at=_looked_at(seen),
            beside_nothing=_compared(seen.less_empty(), "an empty slate"),
            so_far=[SoFar(starts, result, decisions) for starts, result, decisions in so_far if result is not None],
        )

    return await asyncio.to_thread(computed)


async def _seen(connection: AsyncConnection, request: ImpactRequest) -> DecisionsSeen:
    profile = await known_profile(connection, request.user_sub, request.agent)
    rows = (await connection.execute(impact.earned(request.user_sub, request.agent, request.span(MOST)))).all()
    return seen_in(list(reversed(rows)), profile.explore)


def last_weeks(now: datetime, until: datetime | None = None) -> list[datetime]:
    """Returns the start of each of the last weeks until now, or until an earlier time: Monday in UTC, in order."""
    today = min(until or now, now).astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    monday = today - timedelta(days=today.weekday())
    return [monday - timedelta(weeks=before) for before in reversed(range(WEEKS))]


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


def _less(log: Logged, other: Target) -> RewardDifference:
    """Returns the difference to another policy; its rarest served slate bounds the weights that could have come."""
    seen = log.logged_propensity[other.target_probability > 0]
    return difference(log, other, float(seen.min(initial=1)) if len(seen) or not len(log.reward) else RARE)


def _compared(result: RewardDifference, less: Other, version: str | None = None) -> RewardDifferenceOut:
    helped = result.helped
    return RewardDifferenceOut(
        less=less,
        policy_version=version,
        says="cannot say" if helped is None else "helped" if helped else "did harm",
        sentence=sentence(result),
        reward=_range(result),
        decisions=result.decisions,
        slates=result.other_slates,
        effective=result.effective,
        more=result.more,
    )


def _range(result: RewardDifference) -> RangeOut | None:
    if result.estimate is None or result.low is None or result.high is None:
        return None
    return RangeOut(estimate=result.estimate, low=result.low, high=result.high)


def sentence(result: RewardDifference) -> str:
    """Returns the result of a comparison in words, with the number of decisions still needed."""
    seen = _range(result)
    interval = (
        ""
        if seen is None
        else f"{seen.estimate:+.2f} reward per decision (95 %: {seen.low:+.2f} to {seen.high:+.2f}, for a single look)"
    )
    if result.doubt is not None:
        return f"cannot say: {result.doubt}"
    if result.helped is not None:
        return f"{'helped' if result.helped else 'did harm'}: {interval}"
    wanted = (
        "no realistic number of decisions would tell"
        if result.more is None
        else f"{result.more:,} more rewarded decisions at this rate"
    )
    return f"cannot say yet: {wanted}" + (f"; so far {interval}" if interval else "")


def _weeks(
    seen: DecisionsSeen, weeks: Sequence[datetime], asked: Sequence[AnyRow], ended: Sequence[AnyRow]
) -> Iterable[ImpactWeekOut]:
    by_week, runs = {row.week: row for row in asked}, {(row.week, row.shown): row for row in ended}
    for week in sorted({*by_week, *(number for number, _ in runs)}):
        row, starts = by_week.get(week), weeks[week - 1]
        ends = starts + timedelta(weeks=1)
        yield ImpactWeekOut(
            starts=starts,
            decisions=row.decisions if row else 0,
            hit_rate=statistics.ratio(row.hits, row.asked) if row else None,
            reuse_rate=statistics.ratio(row.reused, row.said) if row else None,
            mean_tokens=statistics.ratio(row.tokens, row.decisions) if row else None,
            with_memory=_runs(runs.get((week, True))),
            without_memory=_runs(runs.get((week, False))),
            so_far=_range(seen.less_empty(ends)) if row else None,
        )


def _runs(row: AnyRow | None) -> RunMeansOut | None:
    return None if row is None else RunMeansOut.model_validate(row, from_attributes=True)


async def compared(connection: AsyncConnection, user_sub: str, agent_key: str, now: datetime) -> str:
    """Returns a sentence on outcomes and steps of the agent's runs of the last half year, with and without a case.

    A side with too few runs has no means; the number of missing runs follows in a second sentence.
    """
    runs = statistics.runs_by_week(user_sub, agent_key, last_weeks(now))
    rows = (await connection.execute(runs.add_columns(func.count().filter(failed()).label("failed")))).all()
    with_case, without = ([row for row in rows if row.shown is shown] for shown in (True, False))
    known = f"In the last half year, {_side(with_case, 'had a case')} and {_side(without, 'had none')}."
    missing = [
        f"{lacks:,} more run{'' if lacks == 1 else 's'} {name}"
        for side, name in ((with_case, SHOWN), (without, NOT_SHOWN))
        if (lacks := LEAST_TO_COMPARE - sum(row.runs for row in side)) > 0
    ]
    return f"{known} A comparison of their steps needs {' and '.join(missing)}." if missing else known


def _side(rows: Sequence[AnyRow], verb: str) -> str:
    """Returns the number of runs, with how many failed, and their mean steps if they are enough."""
    count = sum(row.runs for row in rows)
    runs = f"{count:,} run{'' if count == 1 else 's'} {verb}"
    if not count:
        return runs
    outcomes = f"{sum(row.failed for row in rows):,} failed"
    if count < LEAST_TO_COMPARE:
        return f"{runs} ({outcomes})"
    steps, errors = (sum(row.runs * float(getattr(row, name)) for row in rows) / count for name in ("steps", "errors"))
    return f"{runs} ({outcomes}; {steps:.1f} steps on average, {errors:.1f} failed calls)"
