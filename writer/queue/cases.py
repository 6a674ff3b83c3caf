"""Handles retained runs: learns from them, merges repeats, and makes their cases ready."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby, islice

from prometheus_client import Counter
from sqlalchemy import update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from policy.channels import words
from retrieval.errors import (
    CasebankError,
    EmbedderMisbehaved,
    EmbedderRefused,
    UserErased,
)
from retrieval.ports import Embedder, Vector, embed_each
from retrieval.sealed import MOVES, TERMS, CaseWords
from retrieval.tables.cases import case_embeddings
from retrieval.tables.kinds import has_failed
from retrieval.tables.profiles import profiles
from retrieval.telemetry import caused_by, log, stage
from writer.analysis.calls import StoredRun
from writer.analysis.error_signatures import error_signatures
from writer.analysis.moves import moves_of
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
from writer.replays.profile_replay import replay_if_due
from writer.rewards.feedback import credit_run
from writer.vectors import stored

FINISHED = Counter("casebank_worker_cases_total", "Cases that left the queue, by how", ["how"])


@dataclass(slots=True)
class CaseHandler:
    """Learns from retained runs, merges repeats, and makes cases ready.

    Attributes:
        rules: the learners of every profile that wants no language model's.
        llm: builds the learners of a profile that wants a language model's; None: the service has no model.
    """

    queue: Queue
    embedder: Embedder
    keyring: Keyring
    pgvector: bool
    rules: Learners
    llm: Callable[[Profile], Learners] | None

    async def handle(self, leases: Sequence[Lease]) -> None:
        """Finishes the leased cases: first one of each user, then the others, last those that a language model teaches.

        No user's only case then waits for all that another user has in the batch. What a case does not
        need in order to be found comes last: the replay of its profile.

        Raises:
            DatabaseUnavailable: some of the cases are not finished.
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
        with stage("work.replay"):
            for user_sub, agent_key in {(work.held.user_sub, work.held.agent_key) for work in batch}:
                await replay_if_due(self.queue.database, Profile(user_sub, agent_key, leases[0].claimed_at))

    async def _read(self, leases: Sequence[Lease]) -> list[Work]:
        """Returns the leased cases that are still there, the oldest first; each user's rows are read as that user."""
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
        """Opens the cases, learns from each, and embeds and stores them all in one batch."""
        with stage("work.teach"):
            opened = [work for work in batch if await self._goes_on(work, self._open)]
            taught = [work for work in opened if await self._goes_on(work, self._teach)]
        if taught:
            await self._embed(taught)

    async def _embed(self, batch: Sequence[Work], *, triggers: bool = True) -> None:
        """Embeds the cases' tasks, and with ``triggers`` their procedures' triggers, and finishes the cases.

        All texts go to the embedder at once. If it rejects them, the cases go one by one, then each without triggers.
        A task that is rejected even alone would be rejected again: its case is stored without a vector and found by its
        words, and ``casebank reembed`` adds the vector later. After any other error the cases go back to the queue.
        """
        texts = [work.texts if triggers else work.texts[:1] for work in batch]
        try:
            with stage("work.embed"):
                vectors = iter(await embed_each(self.embedder, [text for some in texts for text in some]))
        except CasebankError as error:
            is_one_text = len(batch) == 1 and len(texts[0]) == 1
            if isinstance(error, EmbedderRefused | EmbedderMisbehaved) and not is_one_text:
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
            return
        for work, some in zip(batch, texts, strict=True):
            await self._store(work, list(islice(vectors, len(some))))

    async def _store(self, work: Work, vectors: Sequence[Vector | None]) -> None:
        """Stores the case with the vectors of its first texts; its further texts have no vector."""
        missing: list[Vector | None] = [None] * (len(work.texts) - len(vectors))
        work.vector, *work.trigger_vectors = [*vectors, *missing]
        with stage("work.finalise"):
            await self._goes_on(work, self._finalise)

    async def _goes_on(self, work: Work, step: Callable[[Work], Awaitable[str | None]]) -> bool:
        """Takes one step of the work on a case and returns True if further steps follow; otherwise counts the end.

        Raises:
            DatabaseUnavailable: it is unknown whether the step was taken.
        """
        with caused_by(work.origin, "work.case"):
            how = await self.queue.attempt([work.held], step(work))
            if how is not None:
                FINISHED.labels(how).inc()
                log.info("work.ended", how=how, case_id=str(work.held.row_id))
        return how is None

    async def _open(self, work: Work) -> None:
        """Decrypts the case's task, plan and payload with its user's key.

        Raises:
            LeaseLost: the user's key, and thus the user, is gone.
        """
        held = work.held
        key = self.keyring.remembered(held.user_sub)
        if key is None:
            async with self.queue.database.as_user(held.user_sub, held.claimed_at) as connection:
                key = await self.keyring.find(connection, held.user_sub)
        if key is None:
            raise LeaseLost("the user's key is gone")
        work.opened = unseal(work.case.payload, key.key, user_sub=held.user_sub, case_id=held.row_id)
        work.origin = work.opened.get("origin", {})  # older cases have none
        work.seal = Words(held.user_sub, key)
        work.text = CaseWords(work.case.task, work.case.plan)
        if work.case.words is not None:
            work.text = work.seal.open_case(held.row_id, work.case.words)

    async def _teach(self, work: Work) -> None:
        """Learns facts, procedures and tool use from the run, by the rules or the language model its profile chose."""
        held, case, opened = work.held, work.case, work.opened
        work.opened = {}
        run = StoredRun(work.text.task, case.outcome, opened["tool_traces"], opened["turns"], work.text.plan)
        if case.session_id is None:
            work.facts = await asyncio.to_thread(facts_in_run, opened["turns"], case.created_at)
        if work.seal is not None:
            work.terms = work.seal.numbers(TERMS, words(work.text.task))
            work.moves = work.seal.numbers(MOVES, await asyncio.to_thread(moves_of, run))
        if run.tool_traces:  # in a thread: a long run's calls would hold up the event loop
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
        """Makes the case ready, or merges it into an equal one, with all that was learned from it, in one transaction.

        Returns "ready" or "merged". The audit's entry for the insert is written here, under the actor that retained the
        run, because a retain writes the case's row alone.

        Raises:
            LeaseLost: another worker has the case, or it is gone; nothing was stored.
        """
        held, vector, owner = work.held, work.vector, (work.held.user_sub, work.held.agent_key)
        async with self.queue.database.as_user(held.user_sub, held.claimed_at) as connection:
            await lock_loop(connection, held.user_sub, held.agent_key, work.case.retrieval_id)
            details = {"outcome": work.case.outcome, "reward": work.case.reward}
            await note(connection, Change.of(owner, work.case.source, "insert_case", held.row_id, **details))
            case = await corrected(connection, held, replace(work.case, moves=list(work.moves)), work.counts)
            case = await earlier_feedback(connection, held.user_sub, case)
            near = vector.tolist() if vector is not None and self.pgvector else None
            kept = await connection.scalar(twin(held.user_sub, case, near, self.embedder.model))
            await close(connection, work, kept)
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
            if work.facts:
                key = self.keyring.remembered(held.user_sub) or await self.keyring.find(connection, held.user_sub)
                if key is None:
                    raise LeaseLost("the user's key is gone")
                provenance = Provenance(held.agent_key, "worker", "run", work.case.created_at, case_id=held.row_id)
                for fact in work.facts:
                    await store_fact(connection, Words(held.user_sub, key), fact, provenance)
            if _failed(case) and not _failed(work.case):  # a reward that came after the case was read says so
                await withdraw_learned(connection, held.user_sub, "worker", [held.row_id])
            await remember_errors(connection, held, work.errors)
            await remember_tools(connection, held, work.tools)
            await credit_run(connection, held.user_sub, "worker", case)
        return "merged" if kept is not None else "ready"

    async def _store_vector(self, connection: AsyncConnection, held: Lease, vector: Vector) -> None:
        """Inserts the vector of the case's task."""
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
