"""Cases of any age, and why they were pruned."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Update, select, update

from retrieval.tables.audit import audit
from retrieval.tables.cases import cases
from tests.writer.conftest import Bank

NOW = datetime.now(UTC)


DAY = timedelta(days=1)


def days_ago(days: float, **columns: Any) -> dict[str, Any]:
    return {"created_at": NOW - days * DAY, **columns}


async def reasons(bank: Bank, user: str) -> dict[Any, str]:
    noted = select(audit.c.subject_id, audit.c.payload["why"].astext).where(audit.c.user_sub == user)
    return dict(tuple(row) for row in await bank.read(user, noted.where(audit.c.action == "prune_case")))


def mark_pruned(user: str, case_ids: Sequence[UUID]) -> Update:
    """Takes cases out of searches, as pruning does."""
    mine = update(cases).where(cases.c.user_sub == user, cases.c.id.in_(case_ids))
    return mine.values(status="pruned", pruned_at=datetime.now(UTC))
