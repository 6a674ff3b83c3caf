"""Speed of recall over very many turns, and nearness of a large bank's answer to the exact answer."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import asyncpg
import numpy as np
import uuid_utils.compat as uuids

from bench.measure import Measurement, interleaved, p50
from retrieval.database.fast_path import FastStatement, Record
from retrieval.database.parameters import vector_text
from retrieval.ports import Embedder
from retrieval.recall.recall import LargeBanks
from retrieval.recall.statement import BY_VECTORS, SAMPLED_BY_VECTORS

SIZES = (10_000, 50_000, 100_000)
ROUNDS, WARM_UP = 15, 2
QUESTIONS = 60
"""Questions whose answers are in the bank, at its largest."""
TURNS = 25
"""Turns of each session that is added beside them."""
TOP_K = 10
SPEED_MS = 300.0
OVERLAP = 0.9

Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class LargeBank:
    """One user's bank, which grows; its added rows can be found, but not opened."""

    bare: asyncpg.Connection
    embedder: Embedder
    user: str
    agent: str

    async def grow(self, size: int, others: Sequence[str], rng: random.Random) -> None:
        """Adds turns up to that size; each is half of one text and half of another."""
        have = await self.bare.fetchval("SELECT count(*) FROM memories WHERE user_sub = $1", self.user)
        while have < size:
            count = min(5_000, size - have)
            halves = [(rng.choice(others).split(), rng.choice(others).split()) for _ in range(count)]
            texts = [" ".join(one[: len(one) // 2] + other[len(other) // 2 :]) or "yes" for one, other in halves]
            await self._put(texts)
            have += count
        await self.bare.execute("VACUUM ANALYZE")

    async def _put(self, texts: Sequence[str]) -> None:
        vectors = await self.embedder.embed(list(texts))
        sessions = [uuids.uuid7() for _ in range(0, len(texts), TURNS)]
        await self.bare.execute(
            """INSERT INTO sessions (user_sub, id, name, agent_key, key_id, turn_count)
            SELECT $1, n.id, CAST(n.id AS text), $2, (SELECT key_id FROM sessions WHERE user_sub = $1 LIMIT 1), $4
            FROM unnest($3::uuid[]) n (id)""",
            self.user,
            self.agent,
            sessions,
            TURNS,
        )
        places: list[tuple[UUID, int]] = [(sessions[at // TURNS], at % TURNS + 1) for at in range(len(texts))]
        said_at = datetime.now(UTC)
        await self.bare.executemany(
            "INSERT INTO turns (user_sub, session_id, number, said_at, payload) VALUES ($1, $2, $3, $4, '')",
            [(self.user, session, number, said_at) for session, number in places],
        )
        await self.bare.executemany(
            """INSERT INTO memories
                (user_sub, id, agent_key, kind, session_id, turn_number, search_text, model, embedding, status)
            VALUES ($1, $2, $3, 'turn', $4, $5, $6, $7, CAST($8::real[] AS vector), 'ready')""",
            [
                (self.user, uuids.uuid7(), self.agent, *place, text, self.embedder.model, vector.tolist())
                for place, text, vector in zip(places, texts, vectors, strict=True)
            ],
        )

    async def rows(self, statement: FastStatement[Record], query: str, vector: list[float], size: int) -> Sequence[Any]:
        """Returns the rows of a statement; the sampled one takes the bank's size, as in the service."""
        parameters: dict[str, object] = {
            "user_sub": self.user,
            "authorised_at": datetime.now(UTC),
            "agent_key": self.agent,
            "query": query,
            "kinds": ["turn"],
            "session": None,
            "as_of": None,
            "least": 2.0,
            "top_k": TOP_K,
            "vector": vector_text(vector),
            "model": self.embedder.model,
        }
        if statement is SAMPLED_BY_VECTORS:
            parameters |= {"texts": size, "sample": LargeBanks().sample}
        rows: Sequence[Any] = await self.bare.fetch(statement.sql, *statement.arguments(parameters))
        return rows


async def large(
    bank: LargeBank, others: Sequence[str], queries: Sequence[tuple[str, frozenset[Place]]]
) -> list[Measurement]:
    """Measures both statements in a growing bank, and at its largest the share of answers that they have in common.

    The bank grows by turns made of ``others``; ``queries`` are questions with the places of their answers.
    """
    rng = random.Random(7)
    queries = queries[:: max(1, len(queries) // QUESTIONS)][:QUESTIONS]
    vectors = [each.tolist() for each in await bank.embedder.embed([text for text, _ in queries])]
    measured = []
    for size in SIZES:
        await bank.grow(size, others, rng)

        async def exact(number: int, size: int = size) -> None:
            await bank.rows(BY_VECTORS, queries[number][0], vectors[number], size)

        async def sampled(number: int, size: int = size) -> None:
            await bank.rows(SAMPLED_BY_VECTORS, queries[number][0], vectors[number], size)

        await interleaved(WARM_UP, exact, sampled)
        whole, some = await interleaved(ROUNDS, exact, sampled)
        name, detail = f"recall in {size:,} turns", f"p50; exact {p50(whole):.0f} ms, sampled {p50(some):.0f} ms"
        if size > LargeBanks().texts:
            measured.append(Measurement(name, p50(some), "ms", detail, aim=SPEED_MS))
        else:
            measured.append(
                Measurement(name, p50(whole), "ms", f"{detail}, which is not used below {LargeBanks().texts:,}")
            )
    return [*measured, *await _likeness(bank, queries, vectors)]


async def _likeness(
    bank: LargeBank, queries: Sequence[tuple[str, frozenset[Place]]], vectors: Sequence[list[float]]
) -> list[Measurement]:
    shared, evidence, sessions = [], [], []
    for (query, answers), vector in zip(queries, vectors, strict=True):
        exact = await bank.rows(BY_VECTORS, query, vector, SIZES[-1])
        sampled = await bank.rows(SAMPLED_BY_VECTORS, query, vector, SIZES[-1])
        one, other = _turns(exact), _turns(sampled)
        shared.append(len(one & other) / max(len(one), 1))
        evidence.append([len(answers & places) / len(answers) for places in (one, other)])
        right = {session for session, _ in answers}
        sessions.append([bool(right & _sessions(rows)) for rows in (exact, sampled)])
    recall, hit = np.mean(evidence, axis=0), np.mean(sessions, axis=0)
    detail = f"{len(queries)} questions, {SIZES[-1]:,} turns"
    return [
        Measurement(
            "recall sampled, of the exact 10 turns", float(np.mean(shared)), "", detail, OVERLAP, at_least=True
        ),
        Measurement("recall sampled, turns recall@10", float(recall[1]), "", f"exact {recall[0]:.3f}; {detail}"),
        Measurement("recall sampled, sessions hit@5", float(hit[1]), "", f"exact {hit[0]:.3f}; {detail}"),
    ]


def _turns(rows: Sequence[Any]) -> set[Place]:
    return {(row["session_name"], row["number"]) for row in rows if row["place"] <= TOP_K}


def _sessions(rows: Sequence[Any]) -> set[str]:
    return {row["session_name"] for row in rows if row["best_of_session"] and (row["session_place"] or 9) <= 5}  # noqa: PLR2004 - the best five
