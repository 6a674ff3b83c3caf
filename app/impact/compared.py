"""Compares an agent's runs with and without a case, in one sentence."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import func
from sqlalchemy.ext.asyncio import AsyncConnection

from app.impact.report import last_weeks
from retrieval.database.rows import AnyRow
from retrieval.pages.statistics import runs_by_week
from retrieval.search.bank import failed

SHOWN, NOT_SHOWN = "with a case", "without a case"
LEAST_TO_COMPARE = 10
"""Least number of runs with a case, and of runs without a case, for a comparison of their means."""


async def compared(connection: AsyncConnection, user_sub: str, agent_key: str, now: datetime) -> str:
    """Returns a sentence on outcomes and steps of the agent's runs of the last half year, with and without a case.

    A side with too few runs has no means; the number of missing runs follows in a second sentence.
    """
    runs = runs_by_week(user_sub, agent_key, last_weeks(now))
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
