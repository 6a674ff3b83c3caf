"""Retain: redact, seal, and insert one finished run; the row itself is the entry in the worker's queue."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from uuid import UUID

import asyncpg
from sqlalchemy import CTE, bindparam, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.database import Database
from retrieval.database.fast_path import FastConnection, FastStatement
from retrieval.database.parameters import entered
from retrieval.errors import CasebankError
from retrieval.tables.cases import cases
from retrieval.tables.profiles import profiles
from retrieval.telemetry import REWARDS, stage
from writer.author import Author
from writer.errors import IdempotencyConflict, RunEnded, UnknownReference
from writer.privacy.keys import Keyring, UserKey
from writer.privacy.names import unsecret
from writer.privacy.redact import Redaction
from writer.privacy.seal import seal
from writer.privacy.words import Words
from writer.retain.draft import Draft, completed, draft_of, message_hash
from writer.retain.references import wrong_reference
from writer.retain.under_way import UnderWay, end, lock_run, traces_of
from writer.run import FinishedRun
from writer.sessions.locked import Locked, lock_session, mark_taken, turns_to_take

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
        UnknownReference: it names a parent, a used case or a run under way that the user does not have, or another
            agent's retrieval or run.
        RunEnded: the run under way that it names ended before, and not with this case.
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
    if key is None and draft.run_id is not None and draft.ends_as == "retained":
        key = f"run:{draft.run_id}"  # a run ends once
    if key is not None:
        draft = replace(draft, columns={**draft.columns, "idempotency_key": key})
    with stage("retain.insert"):
        for _ in range(ATTEMPTS):
            try:
                return await _insert(database, keyring, draft, author)
            except asyncpg.ForeignKeyViolationError as error:
                draft = await _repaired(database, keyring, draft, author, error.constraint_name)
    raise AssertionError("all that the database missed was made, and yet it misses one of them")


async def _insert(database: Database, keyring: Keyring, draft: Draft, author: Author) -> Retained:
    # what is to be opened needs the key that the database has; of what is to be sealed the database refuses another
    alone = draft.run_id is None and draft.session is None
    known = keyring.remembered(author.user_sub) if alone else None
    key = known or await _key(database, keyring, author)
    storing = _Storing(author, key, keyring.seals_words)
    if alone:
        async with database.fast(author.user_sub, author.authorised_at) as fast:
            refusal = await storing.store(fast, draft)
    else:
        async with database.as_user(author.user_sub, author.authorised_at) as connection:
            draft, refusal = await storing.store_joined(connection, draft)
    if refusal is None:
        REWARDS.labels(str(draft.columns["reward_source"])).inc()
        return Retained(draft.case_id, "pending", draft.redactions, draft.retrieval_id)
    async with database.as_user(author.user_sub, author.authorised_at) as connection:
        first = await _first_with_that_key(connection, draft, author)
    if first is None:  # a repeat of what was acknowledged stays acknowledged, whatever was deleted since
        raise refusal
    return first


@dataclass(frozen=True, slots=True)
class _Storing:
    """Stores drafts of one author, with the user's key."""

    author: Author
    key: UserKey
    seals_words: bool

    async def store(self, connection: FastConnection, draft: Draft) -> CasebankError | None:
        """Stores the case; returns why not, which of a known key is for the caller to look up."""
        row = _row(draft, self.author, self.key, seals_words=self.seals_words)
        wrong = await _wrong(connection, row)
        if wrong is not None:
            return UnknownReference(wrong)
        stored = await connection.value(insert_case(), row)
        return None if stored is not None else IdempotencyConflict("this Idempotency-Key was used before")

    async def store_joined(self, connection: AsyncConnection, draft: Draft) -> tuple[Draft, CasebankError | None]:
        """Stores the case of a run under way, which ends, or of a session, in one transaction.

        Returns the draft as it was stored, with their steps and turns, and why it was not.
        """
        user_sub, words = self.author.user_sub, Words(self.author.user_sub, self.key)
        run = await lock_run(connection, user_sub, draft.run_id) if draft.run_id is not None else None
        session = await lock_session(connection, user_sub, draft.session) if draft.session is not None else None
        if (wrong := _not_joined(draft, run, session)) is not None:
            return draft, wrong
        wanted = draft.redacted is not None
        steps = await traces_of(connection, words, run.id) if wanted and run is not None else []
        turns = await turns_to_take(connection, words, session) if wanted and session is not None else []
        takes = bool(turns) and not draft.has_turns
        draft = await asyncio.to_thread(completed, draft, steps, turns)
        if run is not None:
            draft = replace(draft, retrieval_id=draft.retrieval_id or run.known_retrieval_id)
        if session is not None:
            draft = replace(draft, columns={**draft.columns, "session_id": session.id})
        fast = await FastConnection.within(connection, user_sub, self.author.authorised_at)
        refusal = await self.store(fast, draft)
        if refusal is None and run is not None:
            await end(connection, self.author, run, draft.case_id, draft.ends_as)
        if refusal is None and session is not None and takes:
            await mark_taken(connection, user_sub, session)
        return draft, refusal


def _not_joined(draft: Draft, run: UnderWay | None, session: Locked | None) -> CasebankError | None:
    """Returns why the draft cannot be joined to the run and the session that it names; None: it can, or names none."""
    agent_key = draft.columns["agent_key"]
    if draft.run_id is not None and (run is None or run.agent_key != agent_key):
        return UnknownReference("run_id names no run of this agent")
    if run is not None and run.status in {"retained", draft.ends_as}:
        return RunEnded("this run ended before")
    if draft.session is not None and (session is None or session.agent_key != agent_key):
        return UnknownReference("session_id names no session of this agent")
    return None


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
    task, plan, effects = _said(draft.columns)
    words: dict[str, object]
    if seals_words:
        words = Words(author.user_sub, key).seal_case(draft.case_id, task, plan, effects)
    else:
        words = {"words": None, "message_hash": message_hash(task, plan)}
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
    "session_id",
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
