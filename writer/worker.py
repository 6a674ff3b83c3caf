"""The worker: takes retained runs off the queue, embeds and analyses them, merges repeats, and makes them ready."""

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby
from typing import Any
from uuid import UUID

import uuid_utils.compat as uuids
from prometheus_client import Counter
from sqlalchemy import Row, Select, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database import Database
from retrieval.errors import (
    CasebankError,
    DatabaseUnavailable,
    EmbedderMisbehaved,
    EmbedderRefused,
    EmbedderUnavailable,
    UserErased,
)
from retrieval.ports import Embedder, Vector, embed_each
from retrieval.queries import stored
from retrieval.schema import case_embeddings, cases, procedures, profiles
from retrieval.stages import log, stage
from writer import queue
from writer.analyst import RuleAnalyst
from writer.audit import Change, note
from writer.dedupe import count_again, twin
from writer.errors import LeaseLost
from writer.keys import Keyring, UserKey
from writer.ports import Analyst, Run, Teachers
from writer.profiles import Profile, is_approximate, lock_profile
from writer.queue import Claim
from writer.reward import credit_run
from writer.seal import SealBroken, unseal
from writer.toolmemory import ToolUse, remember_tools, tools_used

FINISHED = Counter("casebank_worker_cases_total", "Cases that left the queue, by how", ["how"])


@dataclass(frozen=True, slots=True)
class Pace:
    """How the worker takes its work."""

    batch: int = 16
    poll_s: float = 0.2
    lease: timedelta = timedelta(seconds=60)
    max_attempts: int = 8
    backoff_s: float = 1.0
    """Delay after the first failure; doubles with each further one, up to ``backoff_max_s``, half of it by chance."""
    backoff_max_s: float = 300.0


@dataclass(slots=True)
class Worker:
    """One consumer of the queue; any number of them may run, in this process or another."""

    database: Database
    embedder: Embedder
    keyring: Keyring
    pgvector: bool = True
    pace: Pace = field(default_factory=Pace)
    rng: random.Random = field(default_factory=random.Random)
    analyst: Analyst = field(default_factory=RuleAnalyst)
    llm: Callable[[Profile], Teachers] | None = None
    """Makes the teachers of a profile that wants a language model; None: none is configured, and the rules teach."""
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _abandoned: list[Claim] = field(default_factory=list)
    """What a broken connection made this worker leave behind; it need not wait for the lease to end."""

    def wake(self) -> None:
        """Makes the worker look at the queue now; for a retain in the same process."""
        self._wake.set()

    async def run(self) -> None:
        """Works until cancelled; an outage of the database or the embedder only slows it down."""
        while True:
            try:
                worked = await self.run_once()
            except DatabaseUnavailable:
                worked = 0
            except Exception as error:  # noqa: BLE001 - whatever it was, the queue must keep moving
                log.error("worker.crash", error=type(error).__name__)
                worked = 0
            if not worked:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), self.pace.poll_s)
                self._wake.clear()

    async def run_once(self) -> int:
        """Takes one batch off the queue and returns its size, whatever became of it.

        Raises:
            DatabaseUnavailable: the claimed cases come back when this worker claims again, or their lease ends.
        """
        claims = await self._claim()
        if not claims:
            return 0
        try:
            with stage("work"):
                found = await self._read(claims)
                if found:
                    await self._finish(found)
        except DatabaseUnavailable:
            self._abandoned += claims
            raise
        return len(claims)

    async def _claim(self) -> list[Claim]:
        token = uuids.uuid7()
        async with self.database.as_worker() as connection:
            for held in self._abandoned:  # of those that this worker finished after all, no lease is left
                await connection.execute(queue.hand_back(held, "the work broke off", timedelta(), dead=False))
            await connection.execute(queue.bury(self.pace.max_attempts))
            rows = await connection.execute(queue.claim(token, self.pace.lease, self.pace.batch))
            claims = [Claim(r.user_sub, r.id, r.agent_key, r.attempts, token, r.claimed_at) for r in rows]
        self._abandoned.clear()
        return claims

    async def _read(self, claims: Sequence[Claim]) -> list[tuple[Claim, Row[Any]]]:
        """Reads what was claimed, each user's rows as that user; what is gone since is left out."""
        found = []
        by_user = sorted(claims, key=lambda held: held.user_sub)
        for user_sub, group in groupby(by_user, key=lambda held: held.user_sub):
            held = {claim.case_id: claim for claim in group}
            with suppress(UserErased):
                async with self.database.as_user(user_sub, claims[0].claimed_at) as connection:
                    rows = (await connection.execute(_claimed(user_sub, claims[0].lease_token, list(held)))).all()
                    with suppress(SealBroken):  # one user's broken key is a matter of that user's cases
                        await self.keyring.find(connection, user_sub)  # to be remembered, for what is sealed
                    found += [(held[row.id], row) for row in rows]
        # in the order of retaining, the first of equal runs is the one kept; those that wait for a model wait last
        return sorted(found, key=lambda pair: (self._by_llm(pair[1]), pair[0].case_id))

    def _by_llm(self, row: Row[Any]) -> bool:
        return self.llm is not None and row.analyst == "llm"

    async def _finish(self, found: Sequence[tuple[Claim, Row[Any]]]) -> None:
        try:
            with stage("work.embed"):
                vectors = await embed_each(self.embedder, [row.task for _, row in found])
        except CasebankError as error:
            if len(found) > 1 and isinstance(error, EmbedderRefused | EmbedderMisbehaved):
                for each in found:  # the fault may be one text's, and must not be the others'
                    await self._finish([each])
            else:
                for held, _ in found:
                    await self._hand_back(held, error)
            return
        for (held, row), vector in zip(found, vectors, strict=True):
            await self._finish_one(held, row, vector)

    async def _finish_one(self, held: Claim, row: Row[Any], vector: Vector | None) -> None:
        try:
            with stage("work.analyse"):
                told = await self._told(held, row)
                record = await self._learned(held, row, told)
                traces = told["tool_traces"]
                used = await asyncio.to_thread(tools_used, traces) if traces else []
            with stage("work.finalise"):
                how = await self._finalise(held, row, vector, record, used)
        except (UserErased, LeaseLost) as gone:
            how = type(gone).__name__
        except DatabaseUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - one bad case must not stop those behind it
            how = "failed"
            await self._hand_back(held, error)
        FINISHED.labels(how).inc()

    async def _told(self, held: Claim, row: Row[Any]) -> dict[str, Any]:
        """Returns what was sealed of the run."""
        key = self.keyring.remembered(held.user_sub) or await self._key(held)
        told: dict[str, Any] = unseal(row.payload, key.key, user_sub=held.user_sub, case_id=held.case_id)
        return told

    async def _learned(self, held: Claim, row: Row[Any], told: dict[str, Any]) -> dict[str, Any] | None:
        """Returns the procedure that the run brought, or else what the analyst learned from it; None where neither.

        A failure that nothing put right teaches no procedure, so that its lesson is not stored as one.
        """
        if told["procedure"] is not None:
            brought: dict[str, Any] = told["procedure"]["data"]
            return brought
        run = Run(row.task, row.outcome, told["tool_traces"], told["turns"], row.plan)
        try:
            analysis = await (await self._analyst(held, row)).analyse(run)
        except (UserErased, LeaseLost, DatabaseUnavailable):
            raise
        except Exception as error:  # noqa: BLE001 - a case without a lesson is still a case
            log.warning("analyse.failed", error=type(error).__name__)
            return None
        if analysis.lesson is None or analysis.kind != "learned_fix":
            return None
        return analysis.lesson.model_dump(mode="json")

    async def _analyst(self, held: Claim, row: Row[Any]) -> Analyst:
        """Returns who explains the run.

        Raises:
            LeaseLost: those before it in the batch took too long, and a model need not be asked twice.
        """
        if self.llm is None or row.analyst != "llm":
            return self.analyst
        async with self.database.as_worker() as connection:
            if (await connection.execute(queue.renew(held, self.pace.lease))).rowcount != 1:
                raise LeaseLost("the lease ran out, or the case is gone")
        return self.llm(Profile(held.user_sub, held.agent_key, held.claimed_at)).analyst

    async def _key(self, held: Claim) -> UserKey:
        async with self.database.as_user(held.user_sub, held.claimed_at) as connection:
            key = await self.keyring.find(connection, held.user_sub)
        if key is None:
            raise LeaseLost("the user's key is gone")
        return key

    async def _finalise(
        self,
        held: Claim,
        row: Row[Any],
        vector: Vector | None,
        record: dict[str, Any] | None,
        used: Sequence[ToolUse],
    ) -> str:
        """Makes the case ready, or merges it, in one transaction that fails as a whole if the lease is lost."""
        async with self.database.as_user(held.user_sub, held.claimed_at) as connection:
            await lock_profile(connection, held.user_sub, held.agent_key)
            near = vector.tolist() if vector is not None and self.pgvector else None
            kept = await connection.scalar(twin(held.user_sub, row, near, self.embedder.model))
            await _close(connection, held, kept)
            if kept is not None:
                await connection.execute(count_again(held.user_sub, kept, row))
                await note(connection, _merged(held, kept))
            elif vector is not None:
                await self._store_vector(connection, held, vector)
            if record is not None:
                await _store_procedure(connection, held, record)
            await remember_tools(connection, held, used)
            if row.retrieval_id is not None and row.reward is not None:
                await credit_run(connection, held.user_sub, "worker", row)
        return "merged" if kept is not None else "ready"

    async def _store_vector(self, connection: AsyncConnection, held: Claim, vector: Vector) -> None:
        values = {
            "user_sub": held.user_sub,
            "agent_key": held.agent_key,
            "model": self.embedder.model,
            "case_id": held.case_id,
            "dimension": self.embedder.dimension,
            "embedding": stored(vector.tolist()),
            "approximate": is_approximate(held.user_sub, held.agent_key),
        }
        await connection.execute(insert(case_embeddings).values(values))
        # The first vector of a profile chooses its space; a later change of model goes through reembed.
        chosen = update(profiles).where(
            profiles.c.user_sub == held.user_sub,
            profiles.c.agent_key == held.agent_key,
            profiles.c.embedding_model.is_(None),
        )
        await connection.execute(chosen.values(embedding_model=self.embedder.model))

    async def _hand_back(self, held: Claim, error: Exception) -> None:
        # an outage, however long, is no fault of the case
        dead = held.attempts >= self.pace.max_attempts and not isinstance(error, EmbedderUnavailable)
        longest = min(self.pace.backoff_max_s, self.pace.backoff_s * 2 ** (held.attempts - 1))
        delay = timedelta(seconds=longest * (0.5 + 0.5 * self.rng.random()))
        # the type alone: a message could quote what the user wrote
        name = type(error).__name__
        async with self.database.as_worker() as connection:
            await connection.execute(queue.hand_back(held, name, delay, dead=dead))
        log.warning("work.failed", error=name, attempts=held.attempts, dead=dead)


def _claimed(user_sub: str, lease_token: UUID, case_ids: Sequence[UUID]) -> Select[*tuple[Any, ...]]:
    columns = (
        "id",
        "agent_key",
        "kind",
        "task",
        "plan",
        "outcome",
        "reward",
        "reward_source",
        "message_hash",
        "retrieval_id",
        "used_case_ids",
        "payload",
    )
    analyst = select(profiles.c.analyst).where(
        profiles.c.user_sub == user_sub, profiles.c.agent_key == cases.c.agent_key
    )
    return select(*(cases.c[name] for name in columns), analyst.scalar_subquery().label("analyst")).where(
        cases.c.user_sub == user_sub,
        cases.c.id.in_(case_ids),
        cases.c.lease_token == lease_token,
        cases.c.status == "pending",
    )


async def _close(connection: AsyncConnection, held: Claim, kept: UUID | None) -> None:
    """Takes the case off the queue.

    Raises:
        LeaseLost: another worker has it, or it is gone.
    """
    done = (
        update(cases)
        .where(
            cases.c.user_sub == held.user_sub,
            cases.c.id == held.case_id,
            cases.c.lease_token == held.lease_token,
            cases.c.status == "pending",
        )
        .values(
            status="ready" if kept is None else "merged",
            merged_into=kept,
            lease_token=None,
            last_error=None,
            available_at=func.now(),
        )
    )
    if (await connection.execute(done)).rowcount != 1:
        raise LeaseLost("the lease ran out, or the case is gone")


async def _store_procedure(connection: AsyncConnection, held: Claim, record: dict[str, Any]) -> None:
    values = {
        "user_sub": held.user_sub,
        "id": uuids.uuid7(),
        "version": 1,
        "agent_key": held.agent_key,
        "case_id": held.case_id,
        "record": record,
    }
    await connection.execute(insert(procedures).values(values))


def _merged(held: Claim, kept: UUID) -> Change:
    return Change(
        user_sub=held.user_sub,
        agent_key=held.agent_key,
        actor="worker",
        action="merge_case",
        subject_id=held.case_id,
        payload={"into": str(kept)},
    )
