"""Retain: redact, seal, and insert one finished run; the row itself is the entry in the worker's queue."""

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cache
from uuid import UUID

import asyncpg
import uuid_utils.compat as uuids
from sqlalchemy import CTE, Text, Uuid, bindparam, func, literal, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.database import Database
from retrieval.database.fast_path import FastStatement
from retrieval.database.parameters import entered
from retrieval.schema import MAX_SEARCH_TEXT_CHARS, audit, cases, profiles
from retrieval.telemetry import stage
from retrieval.text import folded
from writer.analysis.run_counts import counted_by_status
from writer.author import Author
from writer.errors import IdempotencyConflict
from writer.privacy.keys import Keyring, UserKey
from writer.privacy.redact import Redaction, redact
from writer.privacy.seal import seal
from writer.retain.heuristic import heuristic_reward
from writer.run import FinishedRun

ATTEMPTS = 4
"""A first run of a new user and agent may miss a profile, a key and a retrieval: three repairs, then it fits."""


@dataclass(frozen=True, slots=True)
class Retained:
    """What a retain is answered with."""

    case_id: UUID
    status: str
    redactions: list[Redaction]
    retrieval_id: UUID | None = None
    """The retrieval that the run is joined to; None where it named none, or none that is known."""


async def retain(
    database: Database,
    keyring: Keyring,
    run: FinishedRun,
    author: Author,
    idempotency_key: str | None = None,
) -> Retained:
    """Stores the run as a pending case and returns its id once it is on disk.

    A repeated idempotency key with the same run returns the first case. A run that names a retrieval which is not
    known is kept without it: the log of decisions does not wait for the disk, so a crash may have lost the last ones.

    Raises:
        IdempotencyConflict: the key was used with another run.
        UserErased: the user was erased after the author was authorised.
        DatabaseUnavailable: nothing was stored, or nobody can say whether it was; repeat with the same key.
    """
    with stage("retain.redact"):
        draft = _draft(run, idempotency_key)
    with stage("retain.insert"):
        for _ in range(ATTEMPTS):
            try:
                return await _insert(database, keyring, draft, author)
            except asyncpg.ForeignKeyViolationError as error:
                draft = await _repaired(database, keyring, draft, author, error.constraint_name)
    raise AssertionError("all that the database missed was made, and yet it misses one of them")


@dataclass(frozen=True, slots=True)
class _Draft:
    """A run made ready: redacted, measured and hashed, but for the user's key."""

    case_id: UUID
    columns: dict[str, object]
    payload: dict[str, object]
    redactions: list[Redaction]
    retrieval_id: UUID | None


def _draft(run: FinishedRun, idempotency_key: str | None) -> _Draft:
    raw = run.model_dump(mode="json")
    if run.used_procedure_ids is None:  # as before there were any: a repeat of an older retain is the same request
        del raw["used_procedure_ids"]
    # not orjson: it writes no integer over 64 bits, which a tool's output may well have
    request_hash = hashlib.sha256(json.dumps(raw, sort_keys=True).encode()).digest()
    clean, redactions = redact(raw)
    tools = list(dict.fromkeys(trace["tool"] for trace in clean["tool_traces"]))
    # as far as the statuses tell: the worker looks at the outputs, and corrects these counts and the guessed reward
    counts = counted_by_status(clean["tool_traces"], clean["plan"])
    guess = heuristic_reward(run.outcome, unresolved=counts.unresolved)
    columns = {
        "agent_key": run.agent,
        "kind": run.kind,
        "parent_case_id": run.parent_case_id,
        "status": "pending",
        "task": clean["task"],
        "plan": clean["plan"],
        "tools": tools,
        "effects": counts.effects,
        "tags": clean["tags"],
        "outcome": run.outcome,
        "reward": guess if run.reward is None else run.reward,
        "reward_source": "heuristic" if run.reward is None else run.reward_source or "metric",
        "step_count": len(run.tool_traces) or len(run.plan),
        "error_count": counts.error_count,
        "used_case_ids": run.used_case_ids,
        "used_procedure_ids": run.used_procedure_ids,
        "search_text": "\n".join([clean["task"], *clean["plan"], *tools, *clean["tags"]])[:MAX_SEARCH_TEXT_CHARS],
        "message_hash": message_hash(clean["task"], clean["plan"]),
        "idempotency_key": idempotency_key,
        "request_hash": request_hash,
    }
    payload = {name: clean[name] for name in ("prompt_snapshot", "tool_traces", "turns", "procedure")}
    return _Draft(uuids.uuid7(), columns, payload, redactions, run.retrieval_id)


def message_hash(task: str, plan: list[str]) -> bytes:
    """Returns the hash under which equal runs meet: of task and plan, whatever their case and white space."""
    normal = "\n".join(folded(text) for text in (task, *plan))
    return hashlib.sha256(normal.encode()).digest()


async def _insert(database: Database, keyring: Keyring, draft: _Draft, author: Author) -> Retained:
    key = keyring.remembered(author.user_sub) or await _key(database, keyring, author)
    async with database.fast(author.user_sub, author.authorised_at) as connection:
        case_id = await connection.value(insert_case(), _row(draft, author, key))
    if case_id is not None:
        return Retained(case_id, "pending", draft.redactions, draft.retrieval_id)
    async with database.as_user(author.user_sub, author.authorised_at) as connection:
        return await _first_with_that_key(connection, draft, author)


async def _key(database: Database, keyring: Keyring, author: Author) -> UserKey:
    async with database.as_user(author.user_sub, author.authorised_at) as connection:
        return await keyring.find_or_make(connection, author.user_sub)


def _row(draft: _Draft, author: Author, key: UserKey) -> dict[str, object]:
    """The parameters of ``insert_case``."""
    sealed = seal(draft.payload, key.key, user_sub=author.user_sub, case_id=draft.case_id)
    return {
        **draft.columns,
        "id": draft.case_id,
        "retrieval_id": draft.retrieval_id,
        "key_id": key.key_id,
        "payload": sealed,
        "audit_id": uuids.uuid7(),
        "actor": author.actor,
        "source": author.actor,
    }


INSERTED = (
    "user_sub",
    "id",
    "agent_key",
    "kind",
    "parent_case_id",
    "status",
    "task",
    "plan",
    "tools",
    "effects",
    "tags",
    "outcome",
    "reward",
    "reward_source",
    "step_count",
    "error_count",
    "retrieval_id",
    "used_case_ids",
    "used_procedure_ids",
    "search_text",
    "message_hash",
    "idempotency_key",
    "request_hash",
    "key_id",
    "payload",
    "source",
)
"""The columns of a case that a retain fills; the others begin with their defaults."""


@cache
def insert_case() -> FastStatement[UUID]:
    """Returns the statement that inserts a case and its audit entry; it answers the id, or nothing on a known key.

    Besides the INSERTED columns it takes ``authorised_at``, ``audit_id`` and ``actor``.
    """
    enter = entered()
    values = select(*(bindparam(name, type_=cases.c[name].type) for name in INSERTED)).where(enter.c.entered)
    inserted: CTE = (
        insert(cases)
        .from_select(INSERTED, values)
        .on_conflict_do_nothing(index_elements=["user_sub", "idempotency_key"])
        .returning(cases.c.user_sub, cases.c.id, cases.c.agent_key, cases.c.outcome, cases.c.reward)
        .cte("inserted")
    )
    entry = select(
        inserted.c.user_sub,
        bindparam("audit_id", type_=Uuid),
        inserted.c.agent_key,
        bindparam("actor", type_=Text),
        literal("insert_case"),
        inserted.c.id,
        func.jsonb_build_object("outcome", inserted.c.outcome, "reward", inserted.c.reward),
    )
    names = ["user_sub", "id", "agent_key", "actor", "action", "subject_id", "payload"]
    noted = insert(audit).from_select(names, entry).returning(audit.c.subject_id).cte("noted")
    return FastStatement.of(select(noted.c.subject_id))


async def _first_with_that_key(connection: AsyncConnection, draft: _Draft, author: Author) -> Retained:
    """Returns the case that the idempotency key made before."""
    statement = select(cases.c.id, cases.c.status, cases.c.request_hash, cases.c.retrieval_id).where(
        cases.c.user_sub == author.user_sub,
        cases.c.idempotency_key == draft.columns["idempotency_key"],
    )
    row = (await connection.execute(statement)).one()
    if row.request_hash != draft.columns["request_hash"]:
        raise IdempotencyConflict("this Idempotency-Key was used before with another body")
    return Retained(row.id, row.status, draft.redactions, row.retrieval_id)


async def _repaired(database: Database, keyring: Keyring, draft: _Draft, author: Author, broken: str) -> _Draft:
    """Returns the draft as it will fit: with its profile made, its key to be looked up anew, or no retrieval."""
    if broken == "cases_user_sub_retrieval_id_fkey":
        return replace(draft, retrieval_id=None)
    if broken == "cases_user_sub_key_id_fkey":
        keyring.forget(author.user_sub)
        return draft
    values = {"user_sub": author.user_sub, "agent_key": draft.columns["agent_key"]}
    async with database.as_user(author.user_sub, author.authorised_at) as connection:
        await connection.execute(insert(profiles).values(values).on_conflict_do_nothing())
    return draft
