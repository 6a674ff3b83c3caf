"""Cases of any age, and why they were pruned."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import select

from retrieval.tables.audit import audit
from tests.writer.conftest import Bank

NOW = datetime.now(UTC)


DAY = timedelta(days=1)


def days_ago(days: float, **columns: Any) -> dict[str, Any]:
    return {"created_at": NOW - days * DAY, **columns}


async def reasons(bank: Bank, user: str) -> dict[Any, str]:
    noted = select(audit.c.subject_id, audit.c.payload["why"].astext).where(audit.c.user_sub == user)
    return dict(tuple(row) for row in await bank.read(user, noted.where(audit.c.action == "prune_case")))
