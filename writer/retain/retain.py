"""Retain: redact, seal, and insert one finished run; the row itself is the entry in the worker's queue."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any, cast
from uuid import UUID

import asyncpg
import uuid_utils.compat as uuids
from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema
from sqlalchemy import CTE, bindparam, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.database import Database
from retrieval.database.fast_path import FastConnection, FastStatement
from retrieval.database.parameters import entered
from retrieval.kinds import RewardSource
from retrieval.schema import MAX_SEARCH_TEXT_CHARS, cases, profiles
from retrieval.telemetry import REWARDS, origin, stage
from retrieval.text import folded
from writer.analysis.call_status import failed_by_status
from writer.analysis.run_counts import counted_by_status
from writer.author import Author
from writer.errors import IdempotencyConflict, UnknownReference
from writer.privacy.keys import Keyring, UserKey
from writer.privacy.names import nameable, unsecret
from writer.privacy.redact import Redaction, redact
from writer.privacy.seal import Packed, pack, seal
from writer.privacy.words import Words
from writer.retain.heuristic import heuristic_reward
from writer.retain.plan import CallMade, plan_of
from writer.retain.references import wrong_reference
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


@dataclass(frozen=True, slots=True)
class Draft:
    """A run made ready: redacted, measured and hashed, but for the user's key and the idempotency key.

    Pydantic makes it of a run's JSON, so that a process of its own can do that for a large one.
    """

    case_id: UUID
    columns: dict[str, object]
    payload: Packed
    redactions: list[Redaction]
    retrieval_id: UUID | None
    created_at: datetime | None = None
    """When the run was; None: now."""

    @property
    def reward_source(self) -> RewardSource | None:
        """Who gave the reward; None where there is none."""
        return cast("RewardSource | None", self.columns["reward_source"])

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Returns the schema of a run, whose outcome is the draft; a draft passes as it is."""
        run = handler.generate_schema(FinishedRun)
        return core_schema.no_info_wrap_validator_function(_drafted, run)


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
        UnknownReference: it names a parent or a used case that the user does not have, or another agent's retrieval.
        SecretInName: the agent's name looks like a secret.
        UserErased: the user was erased after the author was authorised.
        DatabaseUnavailable: nothing was stored, or nobody can say whether it was; repeat with the same key.
    """
    return await retain_draft(database, keyring, draft_of(run), author, idempotency_key)


async def retain_draft(
    database: Database,
    keyring: Keyring,
    draft: Draft,
    author: Author,
    idempotency_key: str | None = None,
) -> Retained:
    """Stores a run that was made ready before; the rest is as in ``retain``."""
    key = None if idempotency_key is None else unsecret(idempotency_key)
    draft = replace(draft, columns={**draft.columns, "idempotency_key": key})
    with stage("retain.insert"):
        for _ in range(ATTEMPTS):
            try:
                return await _insert(database, keyring, draft, author)
            except asyncpg.ForeignKeyViolationError as error:
                draft = await _repaired(database, keyring, draft, author, error.constraint_name)
    raise AssertionError("all that the database missed was made, and yet it misses one of them")


def _drafted(given: object, validated: Callable[[object], FinishedRun]) -> Draft:
    return given if isinstance(given, Draft) else draft_of(validated(given))


def draft_of(run: FinishedRun) -> Draft:
    """Returns the run made ready, which takes the longer the more there is to redact."""
    with stage("retain.redact"):
        return _draft(run)


def _draft(run: FinishedRun) -> Draft:
    raw = run.model_dump(mode="json")
    _drop_unsaid(raw)
    # not orjson: it writes no integer over 64 bits, which a tool's output may well have
    request_hash = hashlib.sha256(json.dumps(raw, sort_keys=True).encode()).digest()
    clean, redactions = redact(raw)
    traces, plan = clean["tool_traces"], clean["plan"]
    tools = list(dict.fromkeys(trace["tool"] for trace in traces))
    # as far as the statuses tell: the worker looks at the outputs, and corrects these counts and the guessed reward
    counts = counted_by_status(traces, plan)
    plan = plan or plan_of(  # of calls that say something: else runs of one tool all had the same plan, and merged
        [CallMade(tool=t["tool"], input=t["input"], failed=failed_by_status(t["status"])) for t in traces if t["input"]]
    )
    guess = heuristic_reward(run.outcome, unresolved=counts.unresolved)
    columns = {
        "agent_key": nameable(run.agent),
        "kind": run.kind,
        "parent_case_id": run.parent_case_id,
        "status": "pending",
        "task": clean["task"],
        "plan": plan,
        "tools": tools,
        "effects": counts.effects,
        "tags": clean["tags"],
        "outcome": run.outcome,
        "reward": guess if run.reward is None else run.reward,
        "reward_source": _reward_source(run, guess),
        "step_count": len(run.tool_traces) or len(run.plan),
        "error_count": counts.error_count,
        "used_case_ids": run.used_case_ids,
        "used_procedure_ids": run.used_procedure_ids,
        # not what was read off the calls: their arguments are sealed, and the index is not
        "search_text": search_text(clean["task"], clean["plan"], tools, clean["tags"]),
        "message_hash": message_hash(clean["task"], plan),
        "request_hash": request_hash,
    }
    payload = {name: clean[name] for name in ("prompt_snapshot", "tool_traces", "turns", "procedure")}
    payload["origin"] = origin()  # for the worker's log and trace
    return Draft(uuids.uuid7(), columns, pack(payload), redactions, run.retrieval_id)


def _drop_unsaid(raw: dict[str, Any]) -> None:
    """Takes out the fields that later versions added, where they are not used.

    So a repeat of an older retain is the same request, with the same hash.
    """
    if raw["used_procedure_ids"] is None:
        del raw["used_procedure_ids"]
    for turn in raw["turns"]:
        for name in ("name", "tool_calls", "tool_call_id", "refusal"):
            if turn[name] is None:
                del turn[name]


def _reward_source(run: FinishedRun, guess: float | None) -> RewardSource | None:
    if run.reward is not None and run.reward_source is not None:
        return run.reward_source
    return None if run.reward is None and guess is None else "heuristic"  # unsaid: the run's own word


def search_text(task: str, plan: Sequence[str], tools: Sequence[str], tags: Sequence[str]) -> str:
    """Returns what keywords find a case by."""
    return "\n".join([task, *plan, *tools, *tags])[:MAX_SEARCH_TEXT_CHARS]


def message_hash(task: str, plan: list[str]) -> bytes:
    """Returns the hash under which equal runs meet: of task and plan, whatever their case and white space."""
    normal = "\n".join(folded(text) for text in (task, *plan))
    return hashlib.sha256(normal.encode()).digest()


async def _insert(database: Database, keyring: Keyring, draft: Draft, author: Author) -> Retained:
    key = keyring.remembered(author.user_sub) or await _key(database, keyring, author)
    row = _row(draft, author, key, seals_words=keyring.seals_words)
    async with database.fast(author.user_sub, author.authorised_at) as connection:
        wrong = await _wrong(connection, row)
        case_id: UUID | None = None
        if wrong is None:
            case_id = await connection.value(insert_case(), row)
    if case_id is not None:
        REWARDS.labels(str(draft.columns["reward_source"])).inc()
        return Retained(case_id, "pending", draft.redactions, draft.retrieval_id)
    async with database.as_user(author.user_sub, author.authorised_at) as connection:
        first = await _first_with_that_key(connection, draft, author)
    if first is None:  # a repeat of what was acknowledged stays acknowledged, whatever was deleted since
        raise UnknownReference(wrong)
    return first


async def _wrong(connection: FastConnection, row: Mapping[str, Any]) -> str | None:
    references = row["agent_key"], row["retrieval_id"], row["parent_case_id"], row["used_case_ids"]
    return await wrong_reference(connection, *references)


async def _key(database: Database, keyring: Keyring, author: Author) -> UserKey:
    async with database.as_user(author.user_sub, author.authorised_at) as connection:
        return await keyring.find_or_make(connection, author.user_sub)


def _said(columns: Mapping[str, object]) -> tuple[str, list[str], list[str]]:
    """Returns task, plan and effects."""
    return tuple(columns[name] for name in ("task", "plan", "effects"))  # type: ignore[return-value] # as drafted


def _row(draft: Draft, author: Author, key: UserKey, *, seals_words: bool) -> dict[str, object]:
    """The parameters of ``insert_case``."""
    sealed = seal(draft.payload, key.key, user_sub=author.user_sub, case_id=draft.case_id)
    words: dict[str, object] = {"words": None}
    if seals_words:
        words = Words(author.user_sub, key).seal_case(draft.case_id, *_said(draft.columns))
    return {
        **draft.columns,
        **words,
        "id": draft.case_id,
        "retrieval_id": draft.retrieval_id,
        "key_id": key.key_id,
        "payload": sealed,
        "source": author.actor,
        "created_at": draft.created_at,
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
    "words",
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
"""The columns of a case that a retain fills; the others but ``created_at`` begin with their defaults."""


@cache
def insert_case() -> FastStatement[UUID]:
    """Returns the statement that inserts a case; it answers the id, or nothing on a known key.

    Besides the INSERTED columns it takes ``created_at`` (None: now) and ``authorised_at``. There is no entry in the
    audit yet: the worker writes it in the transaction in which the case joins the bank.
    """
    enter = entered()
    created_at = func.coalesce(bindparam("created_at", type_=cases.c.created_at.type), func.now())
    given = (bindparam(name, type_=cases.c[name].type) for name in INSERTED)
    values = select(*given, created_at).where(enter.c.entered)
    inserted: CTE = (
        insert(cases)
        .from_select([*INSERTED, "created_at"], values)
        .on_conflict_do_nothing(index_elements=["user_sub", "idempotency_key"])
        .returning(cases.c.id)
        .cte("inserted")
    )
    return FastStatement.of(select(inserted.c.id))


async def _first_with_that_key(connection: AsyncConnection, draft: Draft, author: Author) -> Retained | None:
    """Returns the case that the idempotency key made before; None: there is no such key, or none that made a case."""
    if draft.columns["idempotency_key"] is None:
        return None
    statement = select(cases.c.id, cases.c.status, cases.c.request_hash, cases.c.retrieval_id).where(
        cases.c.user_sub == author.user_sub,
        cases.c.idempotency_key == draft.columns["idempotency_key"],
    )
    row = (await connection.execute(statement)).one_or_none()
    if row is None:
        return None
    if row.request_hash != draft.columns["request_hash"]:
        raise IdempotencyConflict("this Idempotency-Key was used before with another body")
    return Retained(row.id, row.status, draft.redactions, row.retrieval_id)


async def _repaired(database: Database, keyring: Keyring, draft: Draft, author: Author, broken: str) -> Draft:
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
