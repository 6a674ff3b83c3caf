"""Handles retained runs: learns from them, merges repeats, and makes their cases ready."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby, islice

from prometheus_client import Counter
from sqlalchemy import update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.errors import (
    CasebankError,
    EmbedderMisbehaved,
    EmbedderRefused,
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
from writer.analysis.recount import recount
from writer.analysis.tool_use import tools_used
from writer.audit import Change, note
from writer.errors import LeaseLost
from writer.facts.store import Provenance, store_fact
from writer.privacy.keys import Keyring
from writer.privacy.master_keys import MasterKeyMismatch
from writer.privacy.seal import SealBroken, unseal
from writer.privacy.words import Words
from writer.procedures import versions
from writer.procedures.learn_from_run import RunToLearnFrom, Terms, learn_from_run
from writer.procedures.ports import Learners, Source
from writer.procedures.withdrawal import withdraw_learned
from writer.profiles import Profile, is_approximate, lock_loop
from writer.queue.case import ClaimedCase, Work, claimed, close, remember_errors, remember_tools, used_by
from writer.queue.correction import corrected, earlier_feedback
from writer.queue.dedupe import count_again, twin
from writer.queue.lease import Lease
from writer.queue.queue import Queue
from writer.queue.sessions import facts_in_run
from writer.rewards.feedback import credit_run
from writer.vectors import stored

FINISHED = Counter("casebank_worker_cases_total", "Cases that left the queue, by how", ["how"])


@dataclass(slots=True)
class CaseHandler:
    """Learns from retained runs, merges repeats, and makes cases ready.

    Attributes:
        rules: the teachers of every profile that wants no language model's.
        llm: the teachers of a profile that wants a language model's; None: the service has none.
    """

    queue: Queue
    embedder: Embedder
    keyring: Keyring
    pgvector: bool
    rules: Learners
    llm: Callable[[Profile], Learners] | None

    async def handle(self, leases: Sequence[Lease]) -> None:
        """Finishes the cases: first one of each user, then the others, last those that a language model teaches.

        So no user's only case waits for all that another has in the batch.

        Raises:
            DatabaseUnavailable: some of them are not finished.
        """
        with stage("work"):
            batch = await self._read(leases)
            by_rules = [work for work in batch if not self._by_llm(work)]
            first = {work.held.user_sub: work for work in reversed(by_rules)}
            await self._finish_together(list(first.values()))
            await self._finish_together([work for work in by_rules if first[work.held.user_sub] is not work])
            for work in batch:
                if self._by_llm(work):
                    await self._finish_together([work])

    async def _read(self, leases: Sequence[Lease]) -> list[Work]:
        """Reads the cases, each user's rows as that user, without those that are gone since."""
        batch = []
        by_user = sorted(leases, key=lambda held: held.user_sub)
        for user_sub, group in groupby(by_user, key=lambda held: held.user_sub):
            held = {lease.row_id: lease for lease in group}
            with suppress(UserErased):
                async with self.queue.database.as_user(user_sub, leases[0].claimed_at) as connection:
                    rows = await connection.execute(claimed(user_sub, leases[0].lease_token, list(held)))
                    cases = [ClaimedCase(*row) for row in rows]
                    # one user's broken key, or one that another process wrapped, is a matter of that user's cases
                    with suppress(SealBroken, MasterKeyMismatch):
                        await self.keyring.find(connection, user_sub)  # to be remembered, for what is sealed
                    batch += [
                        Work(held[case.id], case, used=await used_by(connection, user_sub, case)) for case in cases
                    ]
        # in the order of retaining, the first of equal runs is the one kept
        return sorted(batch, key=lambda work: work.held.row_id)

    def _by_llm(self, work: Work) -> bool:
        return self.llm is not None and work.case.analyst == "llm"

    async def _finish_together(self, batch: Sequence[Work]) -> None:
        with stage("work.teach"):
            opened = [work for work in batch if await self._goes_on(work, self._open)]
            taught = [work for work in opened if await self._goes_on(work, self._teach)]
        if taught:
            await self._embed(taught)

    async def _embed(self, batch: Sequence[Work], *, triggers: bool = True) -> None:
        """Embeds tasks and triggers in one batch, and finishes the cases."""
        texts = [work.texts if triggers else work.texts[:1] for work in batch]
        try:
            with stage("work.embed"):
                vectors = iter(await embed_each(self.embedder, [text for some in texts for text in some]))
        except CasebankError as error:
            await self._without_vectors(batch, error, triggers=triggers)
            return
        for work, some in zip(batch, texts, strict=True):
            await self._store(work, list(islice(vectors, len(some))))

    async def _store(self, work: Work, vectors: Sequence[Vector | None]) -> None:
        """Finishes the case with the vectors of its texts; those that are left out have none."""
        missing: list[Vector | None] = [None] * (len(work.texts) - len(vectors))
        work.vector, *work.trigger_vectors = [*vectors, *missing]
        with stage("work.finalise"):
            await self._goes_on(work, self._finalise)

    async def _without_vectors(self, batch: Sequence[Work], error: CasebankError, *, triggers: bool) -> None:
        """Tries each case by itself, then without its triggers; what has no vector even then goes without, or waits.

        A text that is refused would be refused again, so its case is found by its words; `casebank reembed` brings
        the vector once somebody can make one. A wrong answer is tried again.
        """
        one_text = all(len(work.texts) == 1 for work in batch) or not triggers
        if isinstance(error, EmbedderRefused | EmbedderMisbehaved) and not (len(batch) == 1 and one_text):
            for each in batch:  # the fault may be one text's, and must not be the others'
                await self._embed([each], triggers=len(batch) > 1)
            return
        for work in batch:
            if isinstance(error, EmbedderRefused):
                log.warning("work.no_vector", case_id=str(work.held.row_id))
                await self._store(work, [])
                continue
            with caused_by(work.origin, "work.case"):
                await self.queue.hand_back([work.held], error)

    async def _goes_on(self, work: Work, step: Callable[[Work], Awaitable[str | None]]) -> bool:
        """Takes a step of a case, and returns whether more are to follow: its end, if any, is counted.

        Raises:
            DatabaseUnavailable: nobody can say whether the step was taken.
        """
        with caused_by(work.origin, "work.case"):
            how = await self.queue.attempt([work.held], step(work))
            if how is not None:
                FINISHED.labels(how).inc()
                log.info("work.ended", how=how, case_id=str(work.held.row_id))
        return how is None

    async def _open(self, work: Work) -> None:
        """Opens what the case holds sealed."""
        held = work.held
        key = self.keyring.remembered(held.user_sub)
        if key is None:
            async with self.queue.database.as_user(held.user_sub, held.claimed_at) as connection:
                key = await self.keyring.find(connection, held.user_sub)
        if key is None:
            raise LeaseLost("the user's key is gone")
        work.opened = unseal(work.case.payload, key.key, user_sub=held.user_sub, case_id=held.row_id)
        work.origin = work.opened.get("origin", {})  # older cases have none
        work.text = CaseWords(work.case.task, work.case.plan)
        if work.case.words is not None:
            work.text = Words(held.user_sub, key).open_case(held.row_id, work.case.words)

    async def _teach(self, work: Work) -> None:
        """Learns from the run, by the teachers and on the terms of its profile, and reads its tools' results."""
        held, case, opened = work.held, work.case, work.opened
        work.opened = {}
        run = StoredRun(work.text.task, case.outcome, opened["tool_traces"], opened["turns"], work.text.plan)
        if case.session_id is None:
            work.facts = await asyncio.to_thread(facts_in_run, opened["turns"], case.created_at)
        if run.tool_traces:  # first, for beside the event loop is the place to look at the calls
            work.tools, work.counts, work.errors = await asyncio.to_thread(
                lambda: (tools_used(run), recount(run), error_signatures(run))
            )
        brought = opened["procedure"]["data"] if opened["procedure"] is not None else None
        ended = RunToLearnFrom(run, case.reward, case.reward_source, brought, work.used, case.tags)
        terms = Terms(None if case.abstraction == "off" else case.abstraction, case.least_success)
        if self.llm is None or not self._by_llm(work):
            work.taught = await learn_from_run(ended, terms, self.rules)
            return
        teachers = self.llm(Profile(held.user_sub, held.agent_key, held.claimed_at))
        work.taught = await learn_from_run(ended, terms, teachers, before_each=lambda: self.queue.renew(held))

    async def _finalise(self, work: Work) -> str:
        """Makes the case ready, or merges it, in one transaction that fails as a whole if the lease is lost.

        The audit says that it was inserted from here on, by whoever retained it: a retain writes the case alone.
        """
        held, vector, owner = work.held, work.vector, (work.held.user_sub, work.held.agent_key)
        async with self.queue.database.as_user(held.user_sub, held.claimed_at) as connection:
            await lock_loop(connection, held.user_sub, held.agent_key, work.case.retrieval_id)
            details = {"outcome": work.case.outcome, "reward": work.case.reward}
            await note(connection, Change.of(owner, work.case.source, "insert_case", held.row_id, **details))
            case = await corrected(connection, held, work.case, work.counts)
            case = await earlier_feedback(connection, held.user_sub, case)
            near = vector.tolist() if vector is not None and self.pgvector else None
            kept = await connection.scalar(twin(held.user_sub, case, near, self.embedder.model))
            await close(connection, held, kept)
            if kept is not None:
                await connection.execute(count_again(held.user_sub, kept, case))
                await note(connection, Change.of(owner, "worker", "merge_case", held.row_id, into=str(kept)))
            elif vector is not None:
                await self._store_vector(connection, held, vector)
            source = Source(held.user_sub, held.agent_key, held.row_id, self.embedder.model, self.pgvector)
            vectors = iter(work.trigger_vectors)
            for draft in work.taught.drafts:
                await versions.add(connection, source, draft, next(vectors))
            for used, draft in work.taught.revisions:
                await versions.revise(connection, source, used, draft, next(vectors))
            await self._store_facts(connection, work)
            if _failed(case) and not _failed(work.case):  # as somebody said after it was read
                await withdraw_learned(connection, held.user_sub, "worker", [held.row_id])
            await remember_errors(connection, held, work.errors)
            await remember_tools(connection, held, work.tools)
            await credit_run(connection, held.user_sub, "worker", case)
        return "merged" if kept is not None else "ready"

    async def _store_facts(self, connection: AsyncConnection, work: Work) -> None:
        held = work.held
        if not work.facts:
            return
        key = self.keyring.remembered(held.user_sub) or await self.keyring.find(connection, held.user_sub)
        if key is None:
            raise LeaseLost("the user's key is gone")
        source = Provenance(held.agent_key, "worker", "run", work.case.created_at, case_id=held.row_id)
        for fact in work.facts:
            await store_fact(connection, Words(held.user_sub, key), fact, source)

    async def _store_vector(self, connection: AsyncConnection, held: Lease, vector: Vector) -> None:
        values = {
            "user_sub": held.user_sub,
            "agent_key": held.agent_key,
            "model": self.embedder.model,
            "case_id": held.row_id,
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


def _failed(case: ClaimedCase) -> bool:
    return has_failed(case.outcome, case.reward, case.reward_source)
