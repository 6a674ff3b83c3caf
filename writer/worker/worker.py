"""The worker: takes retained runs off the queue, learns from them, merges repeats, and makes them ready."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby, islice
from uuid import UUID

import uuid_utils.compat as uuids
from prometheus_client import Counter
from sqlalchemy import update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.database import Database
from retrieval.errors import (
    CasebankError,
    DatabaseUnavailable,
    EmbedderMisbehaved,
    EmbedderRefused,
    EmbedderUnavailable,
    UserErased,
)
from retrieval.ports import Embedder, Vector, embed_each
from retrieval.sealed import CaseWords
from retrieval.tables.cases import case_embeddings
from retrieval.tables.kinds import has_failed
from retrieval.tables.profiles import profiles
from retrieval.telemetry import caused_by, log, stage
from writer.analysis.calls import StoredRun
from writer.analysis.error_signatures import error_signatures
from writer.analysis.recount import Recount, recount
from writer.analysis.tool_use import ToolUse, tools_used
from writer.audit import Change, note
from writer.errors import LeaseLost
from writer.facts.store import Provenance, tell
from writer.privacy.keys import Keyring, UserKey
from writer.privacy.master_keys import MasterKeyMismatch
from writer.privacy.seal import SealBroken, unseal
from writer.privacy.words import Words
from writer.procedures import versions
from writer.procedures.learn_from_run import RunToLearnFrom, Terms, learn_from_run, rule_learners
from writer.procedures.ports import Learners, Source
from writer.procedures.withdrawal import withdraw_learned
from writer.profiles import Profile, is_approximate, lock_loop
from writer.rewards.feedback import credit_run
from writer.vectors import stored
from writer.worker import queue
from writer.worker.claimed import ClaimedCase, Work, claimed, close, remember_errors, remember_tools, used_by
from writer.worker.correction import corrected, earlier_feedback
from writer.worker.dedupe import count_again, twin
from writer.worker.memory_embedder import MemoryEmbedder
from writer.worker.queue import Claim
from writer.worker.session_reader import SessionReader, facts_in_run
from writer.worker.summarist import Summarist

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
    rules: Learners = field(default_factory=rule_learners)
    llm: Callable[[Profile], Learners] | None = None
    """Whoever teaches the profiles that want a language model for it; None where the service has none."""
    summarist: Summarist | None = None
    """Who summarises sessions by a language model; None likewise."""
    looked_at: float | None = None
    """When it last began to look at the queue, by the monotonic clock; None: it was never run."""
    _sessions: SessionReader = field(init=False)
    _memories: MemoryEmbedder = field(init=False)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _last_served: str = ""
    """Whose turn it was last; the next batch goes to the users after that one."""
    _abandoned: list[Claim] = field(default_factory=list)
    """What a broken connection made this worker leave behind; it need not wait for the lease to end."""

    def __post_init__(self) -> None:
        """Reads sessions, and embeds memories, at the same pace."""
        pace = self.pace
        self._sessions = SessionReader(
            self.database,
            self.keyring,
            pace.lease,
            pace.max_attempts,
            pace.backoff_s,
            pace.backoff_max_s,
            self.rng,
            self.summarist,
        )
        self._memories = MemoryEmbedder(
            self.database,
            self.embedder,
            self.keyring,
            pace.lease,
            pace.max_attempts,
            pace.backoff_s,
            pace.backoff_max_s,
            self.rng,
        )

    def wake(self) -> None:
        """Makes the worker look at the queue now; for a retain in the same process."""
        self._wake.set()

    async def run(self) -> None:
        """Works until cancelled; an outage of the database or the embedder only slows it down."""
        log.info("worker.started")
        try:
            await self._run()
        finally:
            log.info("worker.ended")

    async def _run(self) -> None:
        while True:
            self.looked_at = time.monotonic()
            try:
                worked = await self.run_once()
            except DatabaseUnavailable:
                worked = 0
            except Exception as error:  # noqa: BLE001 - whatever it was, the queue must keep moving
                log.error("worker.crash", error=type(error).__name__)
                worked = 0
            if not worked:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self.pace.poll_s):  # wait_for forgets a cancellation that meets a wake
                        await self._wake.wait()
                self._wake.clear()

    async def run_once(self) -> int:
        """Takes a batch each of runs, sessions and memories off the queues; returns how many, whatever became of them.

        Raises:
            DatabaseUnavailable: what was claimed comes back when this worker claims again, or its lease ends.
        """
        done = await self._work_on_cases() + await self._sessions.run_once(self.pace.batch)
        return done + await self._memories.run_once()

    async def _work_on_cases(self) -> int:
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
            given_up = (await connection.execute(queue.give_up_on_expired(self.pace.max_attempts))).rowcount
            after, claims = self._last_served, await self._take(connection, token, self.pace.batch)
            if len(claims) < self.pace.batch and after:
                self._last_served = ""  # the users after the last one have had their turn: the first ones begin again
                claims += await self._take(connection, token, self.pace.batch - len(claims))
        self._abandoned.clear()
        if given_up:
            log.warning("work.given_up", cases=given_up)
        return claims

    async def _take(self, connection: AsyncConnection, token: UUID, most: int) -> list[Claim]:
        rows = await connection.execute(queue.claim(token, self.pace.lease, most, self._last_served))
        claims = [Claim(r.user_sub, r.id, r.agent_key, r.attempts, token, r.claimed_at) for r in rows]
        self._last_served = max((claim.user_sub for claim in claims), default=self._last_served)
        return claims

    async def _read(self, claims: Sequence[Claim]) -> list[Work]:
        """Reads what was claimed, each user's rows as that user; what is gone since is left out."""
        found = []
        by_user = sorted(claims, key=lambda held: held.user_sub)
        for user_sub, group in groupby(by_user, key=lambda held: held.user_sub):
            held = {claim.case_id: claim for claim in group}
            with suppress(UserErased):
                async with self.database.as_user(user_sub, claims[0].claimed_at) as connection:
                    rows = await connection.execute(claimed(user_sub, claims[0].lease_token, list(held)))
                    cases = [ClaimedCase(*row) for row in rows]
                    # one user's broken key, or one that another process wrapped, is a matter of that user's cases
                    with suppress(SealBroken, MasterKeyMismatch):
                        await self.keyring.find(connection, user_sub)  # to be remembered, for what is sealed
                    found += [
                        Work(held[case.id], case, used=await used_by(connection, user_sub, case)) for case in cases
                    ]
        # in the order of retaining, the first of equal runs is the one kept
        return sorted(found, key=lambda work: work.held.case_id)

    async def _finish(self, found: Sequence[Work]) -> None:
        """Finishes the first case of each user, then the others; last and one by one what a language model teaches.

        So nobody's only case waits for all that another has in the batch.
        """
        by_rules = [work for work in found if not self._by_llm(work)]
        first = {work.held.user_sub: work for work in reversed(by_rules)}
        for some in (first.values(), [work for work in by_rules if first[work.held.user_sub] is not work]):
            await self._finish_together(list(some))
        for work in found:
            if self._by_llm(work):
                await self._finish_together([work])

    def _by_llm(self, work: Work) -> bool:
        return self.llm is not None and work.case.analyst == "llm"

    async def _finish_together(self, found: Sequence[Work]) -> None:
        with stage("work.teach"):
            opened = [work for work in found if await self._goes_on(work, self._open)]
            taught = [work for work in opened if await self._goes_on(work, self._teach)]
        if taught:
            await self._embed(taught)

    async def _embed(self, found: Sequence[Work], *, triggers: bool = True) -> None:
        """Embeds tasks and triggers in one batch, and finishes the cases."""
        texts = [work.texts if triggers else work.texts[:1] for work in found]
        try:
            with stage("work.embed"):
                vectors = iter(await embed_each(self.embedder, [text for some in texts for text in some]))
        except CasebankError as error:
            await self._without_vectors(found, error, triggers=triggers)
            return
        for work, some in zip(found, texts, strict=True):
            await self._store(work, list(islice(vectors, len(some))))

    async def _store(self, work: Work, vectors: Sequence[Vector | None]) -> None:
        """Finishes the case with the vectors of its texts; those that are left out have none."""
        missing: list[Vector | None] = [None] * (len(work.texts) - len(vectors))
        work.vector, *work.trigger_vectors = [*vectors, *missing]
        with stage("work.finalise"):
            await self._goes_on(work, self._finalise)

    async def _without_vectors(self, found: Sequence[Work], error: CasebankError, *, triggers: bool) -> None:
        """Tries each case by itself, then without its triggers; what has no vector even then goes without, or waits.

        A text that is refused would be refused again, so its case is found by its words; `casebank reembed` brings
        the vector once somebody can make one. A wrong answer is tried again.
        """
        one_text = all(len(work.texts) == 1 for work in found) or not triggers
        if isinstance(error, EmbedderRefused | EmbedderMisbehaved) and not (len(found) == 1 and one_text):
            for each in found:  # the fault may be one text's, and must not be the others'
                await self._embed([each], triggers=len(found) > 1)
            return
        for work in found:
            if isinstance(error, EmbedderRefused):
                log.warning("work.no_vector", case_id=str(work.held.case_id))
                await self._store(work, [])
                continue
            with caused_by(work.origin, "work.case"):
                await self._hand_back(work.held, error)

    async def _goes_on(self, work: Work, step: Callable[[Work], Awaitable[str | None]]) -> bool:
        """Takes a step of a case, and returns whether more are to follow: its end, if any, is counted.

        Raises:
            DatabaseUnavailable: nobody can say whether the step was taken.
        """
        with caused_by(work.origin, "work.case"):
            how = await self._end_of(work.held, step(work))
            if how is not None:
                FINISHED.labels(how).inc()
                log.info("work.ended", how=how, case_id=str(work.held.case_id))
        return how is None

    async def _end_of(self, held: Claim, step: Awaitable[str | None]) -> str | None:
        """How the case ended with this step; None: it goes on."""
        try:
            return await step
        except (UserErased, LeaseLost) as gone:
            return type(gone).__name__
        except DatabaseUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - one bad case must not stop those behind it
            await self._hand_back(held, error)
            return "failed"

    async def _open(self, work: Work) -> None:
        """Opens what the case holds sealed."""
        held = work.held
        key = self.keyring.remembered(held.user_sub) or await self._key(held)
        work.opened = unseal(work.case.payload, key.key, user_sub=held.user_sub, case_id=held.case_id)
        work.origin = work.opened.get("origin", {})  # older cases have none
        work.said = CaseWords(work.case.task, work.case.plan)
        if work.case.words is not None:
            work.said = Words(held.user_sub, key).open_case(held.case_id, work.case.words)

    async def _teach(self, work: Work) -> None:
        """Finds out what the run teaches, by the teachers and on the terms of its profile, and what its tools did."""
        held, case, opened = work.held, work.case, work.opened
        work.opened = {}
        run = StoredRun(work.said.task, case.outcome, opened["tool_traces"], opened["turns"], work.said.plan)
        if case.session_id is None:
            work.facts = await asyncio.to_thread(facts_in_run, opened["turns"], case.created_at)
        if run.tool_traces:  # first, for beside the event loop is the place to look at the calls
            work.tools, work.counts, work.errors = await asyncio.to_thread(_look_at_calls, run)
        brought = opened["procedure"]["data"] if opened["procedure"] is not None else None
        ended = RunToLearnFrom(run, case.reward, case.reward_source, brought, work.used, case.tags)
        terms = Terms(None if case.abstraction == "off" else case.abstraction, case.least_success)
        if self.llm is None or not self._by_llm(work):
            work.taught = await learn_from_run(ended, terms, self.rules)
            return
        teachers = self.llm(Profile(held.user_sub, held.agent_key, held.claimed_at))
        work.taught = await learn_from_run(ended, terms, teachers, before_each=lambda: self._renew(held))

    async def _renew(self, held: Claim) -> None:
        """Lets the lease begin again, for a language model may take most of one.

        Raises:
            LeaseLost: those before it in the batch took too long, and a model need not be asked twice.
        """
        async with self.database.as_worker() as connection:
            if (await connection.execute(queue.renew(held, self.pace.lease))).rowcount != 1:
                raise LeaseLost("the lease ran out, or the case is gone")

    async def _key(self, held: Claim) -> UserKey:
        async with self.database.as_user(held.user_sub, held.claimed_at) as connection:
            key = await self.keyring.find(connection, held.user_sub)
        if key is None:
            raise LeaseLost("the user's key is gone")
        return key

    async def _finalise(self, work: Work) -> str:
        """Makes the case ready, or merges it, in one transaction that fails as a whole if the lease is lost.

        The audit says that it was inserted from here on, by whoever retained it: a retain writes the case alone.
        """
        held, vector = work.held, work.vector
        async with self.database.as_user(held.user_sub, held.claimed_at) as connection:
            await lock_loop(connection, held.user_sub, held.agent_key, work.case.retrieval_id)
            await note(connection, _inserted(held, work.case))
            case = await corrected(connection, held, work.case, work.counts)
            case = await earlier_feedback(connection, held.user_sub, case)
            near = vector.tolist() if vector is not None and self.pgvector else None
            kept = await connection.scalar(twin(held.user_sub, case, near, self.embedder.model))
            await close(connection, held, kept)
            if kept is not None:
                await connection.execute(count_again(held.user_sub, kept, case))
                await note(connection, _merged(held, kept))
            elif vector is not None:
                await self._store_vector(connection, held, vector)
            await self._store_lessons(connection, work)
            await self._store_facts(connection, work)
            if _failed(case) and not _failed(work.case):  # as somebody said after it was read
                await withdraw_learned(connection, held.user_sub, "worker", [held.case_id])
            await remember_errors(connection, held, work.errors)
            await remember_tools(connection, held, work.tools)
            await credit_run(connection, held.user_sub, "worker", case)
        return "merged" if kept is not None else "ready"

    async def _store_lessons(self, connection: AsyncConnection, work: Work) -> None:
        held = work.held
        source = Source(held.user_sub, held.agent_key, held.case_id, self.embedder.model, self.pgvector)
        vectors = iter(work.trigger_vectors)
        for draft in work.taught.drafts:
            await versions.add(connection, source, draft, next(vectors))
        for used, draft in work.taught.revisions:
            await versions.revise(connection, source, used, draft, next(vectors))

    async def _store_facts(self, connection: AsyncConnection, work: Work) -> None:
        held = work.held
        if not work.facts:
            return
        key = self.keyring.remembered(held.user_sub) or await self.keyring.find(connection, held.user_sub)
        if key is None:
            raise LeaseLost("the user's key is gone")
        source = Provenance(held.agent_key, "worker", "run", work.case.created_at, case_id=held.case_id)
        for told in work.facts:
            await tell(connection, Words(held.user_sub, key), told, source)

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
        # an outage, however long, is no fault of the case, and nor is a key that this process was not given
        no_fault = isinstance(error, EmbedderUnavailable | MasterKeyMismatch)
        dead = held.attempts >= self.pace.max_attempts and not no_fault
        delay = queue.backoff(held.attempts, self.pace.backoff_s, self.pace.backoff_max_s, self.rng)
        # the type alone: a message could quote what the user wrote
        name = type(error).__name__
        async with self.database.as_worker() as connection:
            await connection.execute(queue.hand_back(held, name, delay, dead=dead))
        log.warning("work.failed", error=name, attempts=held.attempts, dead=dead)


def _failed(case: ClaimedCase) -> bool:
    return has_failed(case.outcome, case.reward, case.reward_source)


def _look_at_calls(run: StoredRun) -> tuple[list[ToolUse], Recount, list[str]]:
    return tools_used(run), recount(run), error_signatures(run)


def _inserted(held: Claim, case: ClaimedCase) -> Change:
    owner, details = (held.user_sub, held.agent_key), {"outcome": case.outcome, "reward": case.reward}
    return Change.of(owner, case.source, "insert_case", held.case_id, **details)


def _merged(held: Claim, kept: UUID) -> Change:
    return Change(
        user_sub=held.user_sub,
        agent_key=held.agent_key,
        actor="worker",
        action="merge_case",
        subject_id=held.case_id,
        payload={"into": str(kept)},
    )
