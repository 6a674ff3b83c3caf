"""Fills a bank with many users' cases at once: real texts and real vectors, drawn again and again from a pool."""

import random
from collections.abc import Iterator

import asyncpg

from app.providers.wordllama import WordLlamaEmbedder
from retrieval.ports import embed_each
from writer.privacy.master_keys import fingerprint
from writer.privacy.seal import new_user_key, wrap_key

AGENT = "bench"
POOL = 2_000
CASES_PER_USER = 200

_VERBS = [
    "add",
    "drop",
    "rename",
    "alter",
    "copy",
    "merge",
    "split",
    "index",
    "backfill",
    "archive",
    "restore",
    "validate",
]
_THINGS = ["column", "table", "view", "trigger", "role", "schema", "sequence", "constraint", "partition", "policy"]
_NAMES = [
    "users",
    "orders",
    "invoices",
    "payments",
    "sessions",
    "audits",
    "carts",
    "vendors",
    "tickets",
    "refunds",
    "metrics",
    "alerts",
]
_DETAILS = ["with a default", "without a lock", "in one transaction", "for every tenant", "after hours", "by hand"]


def tasks(seed: int, count: int) -> Iterator[str]:
    """Yields task texts, the same ones for the same seed."""
    rng = random.Random(seed)
    for number in range(count):
        words = (rng.choice(_VERBS), rng.choice(_THINGS), rng.choice(_NAMES), rng.choice(_DETAILS))
        yield "{} the {} of {} {} (ticket {})".format(*words, number)


async def fill(url: str, users: int, master_key: bytes, per_user: int = CASES_PER_USER) -> None:
    """Adds ``users`` profiles of so many ready cases each, in plain, to the bank behind the owner's URL."""
    connection = await asyncpg.connect(url.replace("+asyncpg", ""))
    try:
        await _load_pool(connection)
        for statement in _STATEMENTS:
            await connection.execute(statement.format(users=users, per_user=per_user, pool=POOL, agent=AGENT))
        names = [f"user-{number + 1}" for number in range(users)]
        by = fingerprint(master_key)
        keys = [(name, wrap_key(new_user_key(), master_key, user_sub=name), by) for name in names]
        await connection.executemany("UPDATE user_keys SET wrapped_key = $2, master_key = $3 WHERE user_sub = $1", keys)
    finally:
        await connection.close()


async def _load_pool(connection: asyncpg.Connection) -> None:
    embedder = WordLlamaEmbedder()
    texts = list(tasks(1, POOL))
    vectors = [vector.tolist() for vector in await embed_each(embedder, texts) if vector is not None]
    await connection.execute("CREATE TEMP TABLE pool (number int PRIMARY KEY, task text, embedding real[])")
    rows = [(number, task, vector) for number, (task, vector) in enumerate(zip(texts, vectors, strict=True))]
    await connection.copy_records_to_table("pool", records=rows)


_STATEMENTS = (
    """CREATE TEMP TABLE people AS SELECT 'user-' || n AS user_sub, gen_random_uuid() AS key_id
       FROM generate_series(1, {users}) n""",
    "INSERT INTO user_keys (user_sub, key_id, wrapped_key) SELECT user_sub, key_id, '\\x00' FROM people",
    """INSERT INTO profiles (user_sub, agent_key, embedding_model)
       SELECT user_sub, '{agent}', 'wordllama-l2-supercat-256' FROM people""",
    """CREATE TEMP TABLE fresh AS
       SELECT user_sub, key_id, gen_random_uuid() AS id, (random() * ({pool} - 1))::int AS number
       FROM people, generate_series(1, {per_user})""",
    """INSERT INTO cases (user_sub, id, agent_key, kind, status, task, plan, tools, tags, outcome, reward,
                          reward_source, step_count, error_count, search_text, message_hash, request_hash,
                          key_id, payload, created_at)
       SELECT user_sub, id, '{agent}', 'task', 'ready', task, ARRAY['look', 'change', 'check ' || number],
              ARRAY['sql'], ARRAY['ddl'], CASE WHEN number % 4 = 0 THEN 'failure' ELSE 'success' END,
              CASE WHEN number % 4 = 0 THEN 0 ELSE 1 END, 'metric', 3, 0, task, sha256(id::text::bytea),
              sha256(id::text::bytea), key_id, decode(repeat('5a', 600), 'hex'),
              now() - random() * interval '90 days'
       FROM fresh JOIN pool USING (number)""",
    """INSERT INTO case_embeddings (user_sub, agent_key, model, case_id, dimension, embedding)
       SELECT user_sub, '{agent}', 'wordllama-l2-supercat-256', id, 256, embedding::vector
       FROM fresh JOIN pool USING (number)""",
    "VACUUM ANALYZE",
)
