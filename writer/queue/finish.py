"""Finishes claimed cases of one user in one transaction: each becomes ready or merged, and the lessons are stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from uuid import UUID

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.ports import Embedder
from retrieval.tables.kinds import has_failed
from retrieval.tables.profiles import profiles
from writer.advice.settle import advised, settle_advice
from writer.advice.store import failure_rows, store_failures
from writer.audit import Change, note, noted_together
from writer.facts.store import Provenance, apply_facts
from writer.procedures import versions
from writer.procedures.ports import Source
from writer.procedures.reflection import ask_to_reflect
from writer.procedures.withdrawal import retire_lessons, withdraw_learned
from writer.profiles import lock_loop
from writer.queue.case import ClaimedCase, Work, close, lock_held, remember_tools
from writer.queue.correction import corrected, earlier_feedback, with_plan
from writer.queue.dedupe import count_again, twins
from writer.rewards.feedback import credit_run
from writer.vectors import add_vector, as_text


@dataclass(frozen=True, slots=True)
class Finish:
    """The last step of the worker's work on claimed cases, in one transaction of their user.

    Attributes:
        embedder: the model whose vectors are stored.
        pgvector: whether the database compares vectors.
    """

    connection: AsyncConnection
    user_sub: str
    embedder: Embedder
    pgvector: bool

    async def all_of(self, batch: Sequence[Work]) -> dict[UUID, str]:
        """Makes the cases ready, or merges them into equal cases, and stores the lessons of their runs.

        Returns "ready" or "merged" for each case; a case that another worker has, or that was deleted, is left out.
        The audit entry for the insert of a case is written here, under the actor that retained the run, because a
        retain writes only the case's row.
        """
        retrievals = {work.case.retrieval_id for work in batch} - {None}
        agents = {work.held.agent_key for work in batch}
        async with noted_together(self.connection):
            await lock_loop(self.connection, self.user_sub, agents, [each for each in retrievals if each])
            held = await lock_held(self.connection, batch)
            if not held:
                return {}
            kept = await self._make_findable(held)
            await self._store_lessons(held)
            await self._settle(held)
        return {work.held.row_id: "merged" if work.held.row_id in kept else "ready" for work in held}

    async def _make_findable(self, batch: Sequence[Work]) -> Mapping[UUID, UUID]:
        """Corrects the cases and takes them off the queue; returns the merged ones, with the cases that they repeat."""
        connection = self.connection
        for work in batch:
            case_id, details = work.held.row_id, {"outcome": work.case.outcome, "reward": work.case.reward}
            await note(connection, Change.of(_owner(work), work.case.source, "insert_case", case_id, **details))
            case = await corrected(connection, work.held, work.now, work.counts)
            case = await with_plan(connection, work.held, case, work.corrected_plan)
            work.now = await earlier_feedback(connection, self.user_sub, case)
        kept = await twins(connection, self.user_sub, [work.now for work in batch])
        await close(connection, batch, kept)
        for work in batch:
            if (repeated := kept.get(work.held.row_id)) is not None:
                await connection.execute(count_again(self.user_sub, repeated, work.now))
                change = Change.of(_owner(work), "worker", "merge_case", work.held.row_id, into=str(repeated))
                await note(connection, change)
        await self._store_vectors([work for work in batch if work.held.row_id not in kept])
        return kept

    async def _store_vectors(self, batch: Sequence[Work]) -> None:
        """Inserts the vectors of the cases' tasks."""
        for agent_key, group in groupby(sorted(batch, key=_agent), key=_agent):
            mine = list(group)
            rows = [
                {"case_id": work.held.row_id, "vector": as_text(work.vector)}
                for work in mine
                if work.vector is not None
            ]
            if not rows:
                continue
            vector = add_vector(self.user_sub, agent_key, self.embedder.model, self.embedder.dimension)
            await self.connection.execute(vector, rows)
            if any(work.case.embedding_model is None for work in mine):
                # The first vector of a profile chooses its space; a later change of model goes through reembed.
                chosen = update(profiles).where(
                    profiles.c.user_sub == self.user_sub,
                    profiles.c.agent_key == agent_key,
                    profiles.c.embedding_model.is_(None),
                )
                await self.connection.execute(chosen.values(embedding_model=self.embedder.model))

    async def _store_lessons(self, batch: Sequence[Work]) -> None:
        """Stores the procedures, facts, tool use and failures of the runs."""
        connection = self.connection
        for work in batch:
            source = Source(self.user_sub, work.held.agent_key, work.held.row_id, self.embedder.model, self.pgvector)
            vectors = iter(work.trigger_vectors)
            for draft in work.taught.drafts:
                await versions.add(connection, source, draft, next(vectors))
            for used, draft in work.taught.revisions:
                await versions.revise(connection, source, used, draft, next(vectors))
            if _failed(work.now) and not _failed(work.case):  # a reward that came after the case was read says so
                await withdraw_learned(connection, self.user_sub, "worker", [work.held.row_id])
                await ask_to_reflect(connection, self.user_sub, [work.held.row_id])
        await remember_tools(connection, batch)
        for agent_key, group in groupby(sorted(batch, key=_agent), key=_agent):
            mine = list(group)
            facts = [
                (fact, Provenance(agent_key, "worker", "run", work.case.created_at, case_id=work.held.row_id))
                for work in mine
                for fact in work.facts
            ]
            seal = next((work.seal for work in mine if work.seal is not None), None)
            if facts and seal is not None:
                await apply_facts(connection, seal, agent_key, facts)

    async def _settle(self, batch: Sequence[Work]) -> None:
        """Stores what failed, settles advice, and credits what each run was shown."""
        connection = self.connection
        rows = [
            row
            for work in batch
            if work.seal is not None
            for row in failure_rows(work.seal, work.held.agent_key, work.held.row_id, work.failures)
        ]
        await store_failures(connection, rows)
        were_advised = await advised(connection, self.user_sub, [work.held.row_id for work in batch])
        for agent_key, group in groupby(sorted(batch, key=_agent), key=_agent):
            mine = list(group)
            if (seal := next((work.seal for work in mine if work.seal is not None), None)) is not None:
                await retire_lessons(connection, seal, agent_key, [each for work in mine for each in work.failures])
        for work in batch:
            case_id = work.held.row_id
            if work.seal is not None and case_id in were_advised:
                await settle_advice(connection, work.seal, case_id, work.failures)
            await credit_run(connection, self.user_sub, "worker", work.now)


def _agent(work: Work) -> str:
    return work.held.agent_key


def _owner(work: Work) -> tuple[str, str]:
    return work.held.user_sub, work.held.agent_key


def _failed(case: ClaimedCase) -> bool:
    return has_failed(case.outcome, case.reward, case.reward_source)
