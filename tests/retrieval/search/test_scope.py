"""A search of all agents: with pgvector or without the same, by the vectors that may be compared, and by words."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import insert, update

from retrieval.ranking.retrieved import Retrieved
from retrieval.retrieve import Reader
from retrieval.tables.cases import case_embeddings
from retrieval.tables.columns import ALL_AGENTS
from retrieval.tables.profiles import profiles
from tests.retrieval.conftest import EMBEDDER, WALLS, ask, ids, logged
from tests.writer.conftest import AGENT, Bank
from writer.profiles import Profile
from writer.upkeep.reembed import reembed

AGENTS = (AGENT, "roofer", "gardener")


@pytest.fixture
async def filled(bank: Bank, user: str) -> str:
    """A user whose agents each painted some walls, and whose fourth has never done anything."""
    await bank.add(user)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        more = [{"user_sub": user, "agent_key": agent} for agent in (*AGENTS[1:], "idle")]
        await connection.execute(insert(profiles), more)
    for place, wall in enumerate(WALLS):
        row = {"agent_key": AGENTS[place % 3], "task": f"paint the {wall} wall", "plan": [f"paint {wall}"]}
        await bank.add(user, row)
    for agent in AGENTS:
        await reembed(bank.database, EMBEDDER, Profile(user, agent, datetime.now(UTC)))
    return user


async def ask_all(reader: Reader, user: str, k: int = 50) -> Retrieved:
    return await ask(reader, user, agent=ALL_AGENTS, k=k)


async def test_with_pgvector_or_without_it_finds_the_same_by_the_same_ranks(bank: Bank, filled: str):
    answers = [await ask_all(Reader(bank.database, EMBEDDER, pgvector=pgvector), filled) for pgvector in (True, False)]
    ranks = [
        {each.row.id: (each.row.semantic_rank, each.row.keyword_rank, each.row.agent_key) for each in answer.choices}
        for answer in answers
    ]
    assert ranks[0] == ranks[1]
    assert len(ranks[0]) == len(WALLS)
    assert {agent for _, _, agent in ranks[0].values()} == set(AGENTS)
    assert [answer.degraded for answer in answers] == [[], ["pgvector"]]


async def test_an_agent_whose_vectors_are_of_another_model_is_found_by_words_and_that_is_said(
    bank: Bank, reader: Reader, filled: str
):
    async with bank.database.as_user(filled, datetime.now(UTC)) as connection:
        for table, column in ((profiles, "embedding_model"), (case_embeddings, "model")):
            mine = table.c.user_sub == filled, table.c.agent_key == "roofer"
            await connection.execute(update(table).where(*mine).values({column: "another"}))
    answer = await ask_all(reader, filled)
    assert (answer.mode, answer.degraded) == ("keyword", ["embedding_model"])
    by_words = {each.row.agent_key for each in answer.choices if each.row.semantic_rank is None}
    assert (by_words, len(answer.choices)) == ({"roofer"}, len(WALLS))


async def test_the_settings_are_those_of_a_new_profile_whatever_the_agents_have(
    bank: Bank, reader: Reader, filled: str
):
    await bank.set_profile(filled, k=1, explore=1.0, canary=0.9, rewrite="llm", full_text_weight=0.0)
    for _ in range(5):
        assert len(ids(await ask(reader, filled, agent=ALL_AGENTS))) == 4
    rows = await logged(bank, filled)
    assert {(row.agent_key, row.arm, row.slate_propensity, row.rewritten) for row in rows} == {
        (ALL_AGENTS, "default", 1.0, None)
    }


async def test_memory_is_off_where_that_of_every_agent_is(bank: Bank, reader: Reader, filled: str):
    await bank.set_profile(filled, enabled=False)
    answer = await ask_all(reader, filled)
    assert (answer.mode, ids(answer)) == ("off", [])
