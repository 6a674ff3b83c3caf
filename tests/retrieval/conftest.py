"""A bank of painted walls, and what the tests of a retrieval ask of it."""

import os
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select

from app.postgres.pools import service_database
from app.providers.wordllama import WordLlamaEmbedder
from retrieval.ranking.retrieved import Question, Retrieved
from retrieval.retrieve import Reader
from retrieval.search.candidates import CaseSearch
from retrieval.tables.decisions import decision_slots, decisions
from tests.writer.conftest import AGENT, Bank
from writer.privacy.keys import Keyring
from writer.upkeep.reembed import reembed

EMBEDDER = WordLlamaEmbedder()
ASKED = "paint the wall"
WALLS = ["north", "south", "east", "west", "upper", "lower", "inner", "outer", "left", "right", "first", "last"]


@pytest.fixture(scope="module")
async def bank(database_url: str) -> AsyncIterator[Bank]:
    async with service_database(database_url) as database:
        yield Bank(database, Keyring(os.urandom(32)))


@pytest.fixture(scope="module")
def reader(bank: Bank) -> Reader:
    """One process, which remembers what it loaded."""
    return Reader(bank.database, EMBEDDER, explore=True)


@pytest.fixture
def user() -> str:
    return f"user-{uuid4()}"


async def walls(bank: Bank, user: str, **more: Any) -> list[UUID]:
    """A case for each wall, the oldest first, days apart, each painted in its own way and with fewer steps."""
    now = datetime.now(UTC)
    rows = [
        {
            "task": f"paint the {wall} wall",
            "plan": ["look", f"paint {wall}"],
            "step_count": len(WALLS) - age,
            "created_at": now - timedelta(days=2 * (len(WALLS) - age) + 0.5),
            **more,
        }
        for age, wall in enumerate(WALLS)
    ]
    ids = await bank.add(user, *rows)
    await reembed(bank.database, EMBEDDER, bank.profile(user))
    await bank.set_profile(user, explore=0.0, canary=0.25)
    return ids


async def ask(reader: Reader, user: str, query: str = ASKED, agent: str = AGENT, **more: Any) -> Retrieved:
    return await reader.retrieve(user, datetime.now(UTC), Question(CaseSearch(agent, query), **more))


def ids(slate: Retrieved) -> list[UUID]:
    return [choice.row.id for choice in slate.choices]


async def logged(bank: Bank, user: str) -> Sequence[Any]:
    return await bank.read(user, select(decisions).where(decisions.c.user_sub == user).order_by(decisions.c.id))


async def slates(bank: Bank, user: str) -> dict[UUID, list[Any]]:
    """The slots of each decision, in order."""
    mine = select(decision_slots).where(decision_slots.c.user_sub == user).order_by(decision_slots.c.place)
    found: dict[UUID, list[Any]] = {row.id: [] for row in await logged(bank, user)}
    for slot in await bank.read(user, mine):
        found[slot.decision_id].append(slot)
    return found
