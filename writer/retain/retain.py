"""Retains one finished run: prepares, encrypts and inserts it as a case; the row is also the worker's queue entry."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import asyncpg
from sqlalchemy import select
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.database import Database
from retrieval.database.fast_path import FastConnection, insert_row
from retrieval.errors import CasebankError
from retrieval.tables.cases import cases
from retrieval.tables.profiles import profiles
from retrieval.tables.runs import runs
from retrieval.telemetry import REWARDS, stage
from writer.author import Author
from writer.errors import IdempotencyConflict, MemoryOff, RunEnded, UnknownReference
from writer.privacy.keys import Keyring
from writer.privacy.names import looks_secret, unsecret
from writer.privacy.redact import Redaction
from writer.privacy.words import Words
from writer.retain.prepare import PreparedRun, RedactedRun, measure, message_hash, prepare
from writer.retain.references import wrong_reference
from writer.retain.statements import INSERTED, WRITING, insert_case
from writer.retain.under_way import end, lock_run, traces_of
from writer.run import FinishedRun
from writer.sessions.lock import lock_session, mark_taken, turns_to_take

ATTEMPTS = 4
"""Maximum attempts to insert a run: the first, and one after each repair (missing profile, new key, lost retrieval)."""


@dataclass(frozen=True, slots=True)
class Retained:
    """A stored run: its case, and the redactions made in it.

    Attributes:
        retrieval_id: the retrieval that the run is linked to; None: the run named no retrieval, or an unknown one.
    """

    case_id: UUID
    status: str
    redactions: list[Redaction]
    retrieval_id: UUID | None = None
    warnings: list[str] = field(default_factory=list)


async def retain(
    database: Database,
    keyring: Keyring,
    run: FinishedRun,
    author: Author,
    idempotency_key: str | None = None,
) -> Retained:
    """Redacts a finished run and stores it as a pending case: ``prepare``, then ``store``; raises what these raise."""
    return await store(database, keyring, prepare(run), author, idempotency_key)


async def store(
    database: Database,
    keyring: Keyring,
    run: PreparedRun,
    author: Author,
    idempotency_key: str | None = None,
) -> Retained:
    """Stores a run as a pending case, and returns the case once it is on disk.

    A repeated idempotency key with the same run returns the first case, and so does the same request under another key
    if it ended a run under way. The key of a case whose ``request_hash`` was cleared returns that case for any run.
    A run with an unknown retrieval is stored without the retrieval, with a warning: the log of decisions does not wait
    for the disk, so a crash may have lost it. So is a run of an unknown session, which may have expired, or whose turns
    never arrived.

    Raises:
        IdempotencyConflict: the key was used with another run.
        UnknownReference: the run names a parent, a used case or a run under way that the user does not have, or another
            agent's retrieval, run or session.
        MemoryOff: the user switched off writing for this agent.
        RunEnded: the run under way that the request names ended before, by another request.
        DatabaseUnavailable: nothing was stored, or it is unknown whether it was; repeat with the same key.
    """
    name = idempotency_key
    if name is not None and looks_secret(name):
        async with database.as_user(author.user_sub, author.authorised_at) as connection:
            words = await keyring.find_or_make(connection, author.user_sub)
            name, before = unsecret(name, words)
            older = cases.c.user_sub == author.user_sub, cases.c.idempotency_key == before
            name = await connection.scalar(select(cases.c.idempotency_key).where(*older)) or name
    if name is None and run.run_id is not None and run.ends_as == "retained":
        name = f"run:{run.run_id}"  # a run ends once
    storing, given = _Storing(database, keyring, author, name), run.retrieval_id
    with stage("retain.insert"):
        for _ in range(ATTEMPTS):
            try:
                stored = await storing.store(run)
            except asyncpg.ForeignKeyViolationError as error:
                run = await storing.repair(run, str(error))
                continue
            if given is None or stored.retrieval_id is not None:
                return stored
            dropped = f"retrieval_id: no retrieval {given} is known; the run is stored without one"
            return replace(stored, warnings=[*stored.warnings, dropped])
    raise AssertionError("the run refers to a row that is missing although each missing row was made")


async def store_within(
    database: Database, connection: AsyncConnection, keyring: Keyring, run: PreparedRun, author: Author
) -> None:
    """Stores a run that names no other rows, as ``store`` does, in the transaction of the caller.

    Raises:
        MemoryOff: the user switched off writing for this agent.
    """
    await connection.execute(_profile_of(author, run))
    words = await keyring.find_or_make(connection, author.user_sub)
    fast = await FastConnection.within(connection, author.user_sub, author.authorised_at)
    refusal = await _Storing(database, keyring, author, None).insert(fast, words, run)
    if refusal is not None:
        raise refusal


def _profile_of(author: Author, run: PreparedRun) -> Insert:
    """Returns a statement that inserts the profile of the run's agent, unless it is there."""
    return insert(profiles).values(user_sub=author.user_sub, agent_key=run.agent_key).on_conflict_do_nothing()


@dataclass(frozen=True, slots=True)
class _Storing:
    """Stores a run of one author, under an idempotency key if it has one."""

    database: Database
    keyring: Keyring
    author: Author
    idempotency_key: str | None

    async def store(self, run: PreparedRun) -> Retained:
        """Inserts the run's case; returns it, or the case that was stored under the idempotency key before."""
        author = self.author
        joins = run.run_id is not None or run.session is not None
        # opening steps and turns takes the key that the database has; a row that is sealed with another one it refuses
        words = None if joins else self.keyring.remembered(author.user_sub)
        if words is None:
            async with self.database.as_user(author.user_sub, author.authorised_at) as connection:
                words = await self.keyring.find_or_make(connection, author.user_sub)
        if joins:
            async with self.database.as_user(author.user_sub, author.authorised_at) as connection:
                run, refusal = await self._insert_joined(connection, words, run)
        else:
            async with self.database.fast(author.user_sub, author.authorised_at) as fast:
                refusal = await self.insert(fast, words, run)
        if refusal is None:
            REWARDS.labels(str(run.measured.columns["reward_source"])).inc()
            return Retained(run.case_id, "pending", run.redactions, run.retrieval_id, run.warnings)
        # a repeat of an acknowledged run stays acknowledged, whatever was deleted since
        first = None
        if self.idempotency_key is not None:
            names = "id", "status", "request_hash", "retrieval_id", "idempotency_key"
            mine = select(*(cases.c[name] for name in names)).where(cases.c.user_sub == author.user_sub)
            ended = select(runs.c.case_id).where(runs.c.user_sub == author.user_sub, runs.c.id == run.run_id)
            async with self.database.as_user(author.user_sub, author.authorised_at) as connection:
                known = mine.where(cases.c.idempotency_key == self.idempotency_key)
                first = (await connection.execute(known)).one_or_none()
                if first is None and isinstance(refusal, RunEnded):  # retained under another key
                    first = (await connection.execute(mine.where(cases.c.id.in_(ended)))).one_or_none()
                # not the cached key, which may be from before an erasure
                words = await self.keyring.find_or_make(connection, author.user_sub)
        if first is None:
            raise refusal
        same_key = first.idempotency_key == self.idempotency_key
        # an older version stores the hash without a key; a migration cleared those that it had stored
        hashes = {words.hash_of_call(run.request_hash), run.request_hash}
        if first.request_hash not in (hashes | {b""} if same_key else hashes):
            if not same_key:
                raise refusal
            raise IdempotencyConflict("this Idempotency-Key was used before with another body")
        return Retained(first.id, first.status, run.redactions, first.retrieval_id, run.warnings)

    async def insert(
        self, connection: FastConnection, words: Words, run: PreparedRun, session_id: UUID | None = None
    ) -> CasebankError | None:
        """Inserts the case, encrypted; returns None, or the error that kept it from being inserted."""
        columns, texts = run.measured.columns, dict[str, object]()
        wrong = await wrong_reference(
            connection, run.agent_key, run.retrieval_id, columns["parent_case_id"], columns["used_case_ids"]
        )
        if wrong is not None:
            return UnknownReference(wrong)
        task, plan, effects = (columns[name] for name in ("task", "plan", "effects"))
        with stage("retain.seal"):
            if self.keyring.seals_words:
                texts = words.seal_case(run.case_id, task, plan, effects)
            else:
                texts = {"words": None, "message_hash": message_hash(task, plan)}
            payload = words.seal("payload", run.measured.payload, run.case_id)
        row = {
            **columns,
            **texts,
            "id": run.case_id,
            "agent_key": run.agent_key,
            "retrieval_id": run.retrieval_id,
            "session_id": session_id,
            "idempotency_key": self.idempotency_key,
            "request_hash": words.hash_of_call(run.request_hash),
            "key_id": words.key_id,
            "payload": payload,
            "source": self.author.actor,
            "created_at": run.created_at,
            "even_off": run.ends_as == "aborted",  # its steps are stored already
        }
        statement = insert_case()
        if self.database.citus:
            if not row["even_off"] and await connection.value(WRITING, {"agent_key": run.agent_key}) is False:
                return MemoryOff()
            dated = ("created_at",) if run.created_at else ()
            once = "ON CONFLICT (user_sub, idempotency_key) DO NOTHING RETURNING id"
            statement = insert_row(cases, (*INSERTED, *dated), once)
        if await connection.value(statement, row) is not None:
            return None
        if await connection.value(WRITING, {"agent_key": run.agent_key}) is False:
            return MemoryOff()
        return IdempotencyConflict("this Idempotency-Key was used before")

    async def _insert_joined(
        self, connection: AsyncConnection, words: Words, run: PreparedRun
    ) -> tuple[PreparedRun, CasebankError | None]:
        """Inserts the case of a run that ends a run under way, or belongs to a session, in one transaction.

        Returns the run, measured with the steps and turns that were stored before, and None or the error that kept it
        from being inserted.
        """
        user_sub = self.author.user_sub
        under_way = await lock_run(connection, user_sub, run.run_id) if run.run_id is not None else None
        session = await lock_session(connection, user_sub, run.session) if run.session is not None else None
        if run.run_id is not None and (under_way is None or under_way.agent_key != run.agent_key):
            return run, UnknownReference("run_id names no run of this agent")
        if under_way is not None and under_way.status in {"retained", run.ends_as}:
            return run, RunEnded("this run ended before")
        if under_way is not None and run.ends_as == "aborted" and run.created_at != under_way.last_step_at:
            return run, RunEnded("a step came: this run goes on")
        if session is not None and session.agent_key != run.agent_key:
            return run, UnknownReference("session_id names a session of another agent")
        if run.session is not None and session is None:
            dropped = "session_id: no such session is known; the run is stored without one"
            run = replace(run, warnings=[*run.warnings, dropped])
        turns: Sequence[Mapping[str, Any]] = []
        if isinstance(run.content, RedactedRun):
            lacks = run.content
            steps = await traces_of(connection, words, under_way.id) if lacks.lacks_steps and under_way else []
            turns = await turns_to_take(connection, words, session) if lacks.lacks_turns and session else []
            found = session is not None
            content = await asyncio.to_thread(lambda: measure(lacks.joined(steps, turns), in_session=found))
            run = replace(run, content=content)
        if under_way is not None:
            run = replace(run, retrieval_id=run.retrieval_id or under_way.known_retrieval_id)
        fast = await FastConnection.within(connection, user_sub, self.author.authorised_at)
        refusal = await self.insert(fast, words, run, None if session is None else session.id)
        if refusal is None and under_way is not None:
            await end(connection, self.author, under_way, run.case_id, run.ends_as)
        if refusal is None and session is not None and turns:
            await mark_taken(connection, user_sub, session)
        return run, refusal

    async def repair(self, run: PreparedRun, broken: str) -> PreparedRun:
        """Removes the cause of a broken foreign key and returns the run to store.

        It inserts the missing profile, forgets the cached key, or drops the unknown retrieval from the run.

        ``broken`` is the database's message: on a cluster only it names the constraint, with a shard's number.
        """
        if "cases_user_sub_retrieval_id_fkey" in broken:
            return replace(run, retrieval_id=None)
        if "cases_user_sub_key_id_fkey" in broken:
            self.keyring.forget(self.author.user_sub)
            return run
        async with self.database.as_user(self.author.user_sub, self.author.authorised_at) as connection:
            await connection.execute(_profile_of(self.author, run))
        return run
