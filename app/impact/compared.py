"""Compares an agent's runs with and without a case, in one sentence."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from app.impact.impact import last_weeks
from retrieval.database.rows import AnyRow
from retrieval.pages.statistics import runs_by_week

SHOWN, NOT_SHOWN = "with a case", "without a case"
LEAST_TO_COMPARE = 10
"""Least number of runs with a case, and of runs without a case, for a comparison of their means."""


async def compared(connection: AsyncConnection, user_sub: str, agent_key: str, now: datetime) -> str:
    """Returns a sentence on steps and failed calls of the agent's runs of the last half year, with and without a case.

    If one side has too few runs, the sentence names the number of missing runs in place of the means.
    """
    return _compared((await connection.execute(runs_by_week(user_sub, agent_key, last_weeks(now)))).all())


def _compared(rows: Sequence[AnyRow]) -> str:
    sides = [[row for row in rows if row.shown is shown] for shown in (True, False)]
    counts = [sum(row.runs for row in side) for side in sides]
    had = f"{_runs(counts[0])} had a case and {_runs(counts[1])} had none"
    missing = [
        f"{LEAST_TO_COMPARE - count} more {'run' if LEAST_TO_COMPARE - count == 1 else 'runs'} {name}"
        for count, name in zip(counts, (SHOWN, NOT_SHOWN), strict=True)
        if count < LEAST_TO_COMPARE
    ]
    if missing:
        return (
            f"In the last half year, {had}. This is too few to say whether memory helped: a comparison needs"
            f" {LEAST_TO_COMPARE} of each, {' and '.join(missing)}."
        )
    steps, errors = (
        [
            sum(row.runs * float(getattr(row, name)) for row in side) / count
            for side, count in zip(sides, counts, strict=True)
        ]
        for name in ("steps", "errors")
    )
    return (
        f"In the last half year, {_runs(counts[0])} with a case took {steps[0]:.1f} steps on average,"
        f" {errors[0]:.1f} of them failed; {_runs(counts[1])} without a case took {steps[1]:.1f},"
        f" {errors[1]:.1f} of them failed."
    )


def _runs(count: int) -> str:
    return f"{count:,} run{'' if count == 1 else 's'}"
