"""Cases for a poisoned bank, stored as the worker would leave them."""

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import asyncpg

from retrieval.ports import Embedder

AGENT = "bench"


@dataclass(frozen=True, slots=True)
class Case:
    """A ready case, as far as it matters here; its reward, 1 or 0, came with the run."""

    task: str
    plan: tuple[str, ...]
    outcome: str = "success"
    source: str = "service"
    tags: tuple[str, ...] = ()
    proven: bool = False


async def put(url: str, user: str, bank: Sequence[Case], embedder: Embedder) -> list[UUID]:
    """Adds a profile with these cases behind the owner's URL, and returns their ids: the same for the same user."""
    ids = [UUID(int=random.Random(f"{user} {number}").getrandbits(128)) for number in range(len(bank))]
    vectors = [vector.tolist() for vector in await embedder.embed([case.task for case in bank])]
    connection = await asyncpg.connect(url.replace("+asyncpg", ""))
    try:
        await connection.execute(_KEY, user, ids[0])
        await connection.execute(_PROFILE, user, AGENT, embedder.model)
        rows = [_row(user, ids[0], case_id, case) for case_id, case in zip(ids, bank, strict=True)]
        await connection.executemany(_CASE, rows)
        embeddings = [(user, AGENT, embedder.model, *pair) for pair in zip(ids, vectors, strict=True)]
        await connection.executemany(_VECTOR, embeddings)
    finally:
        await connection.close()
    return ids


def _row(user: str, key_id: UUID, case_id: UUID, case: Case) -> tuple[object, ...]:
    words = "\n".join([case.task, *case.plan, *case.tags])
    reward = float(case.outcome == "success")
    digest = hashlib.sha256(case_id.bytes).digest()
    columns = (user, case_id, AGENT, case.task, list(case.plan), list(case.tags), case.outcome, reward, words, digest)
    return (*columns, key_id, case.source, case.proven)


_KEY = "INSERT INTO user_keys (user_sub, key_id, wrapped_key) VALUES ($1, $2, '\\x00')"
_PROFILE = "INSERT INTO profiles (user_sub, agent_key, embedding_model) VALUES ($1, $2, $3)"
_CASE = """INSERT INTO cases (user_sub, id, agent_key, kind, status, task, plan, tools, tags, outcome, reward,
                             reward_source, step_count, error_count, search_text, message_hash, request_hash, key_id,
                             payload, source, proven)
           VALUES ($1, $2, $3, 'task', 'ready', $4, $5, '{}', $6, $7, $8,
                   'heuristic', 2, 0, $9, $10, $10, $11, '\\x00', $12, $13)"""
_VECTOR = """INSERT INTO case_embeddings (user_sub, agent_key, model, case_id, dimension, embedding)
             VALUES ($1, $2, $3, $4, cardinality($5::real[]), $5::real[]::vector)"""
