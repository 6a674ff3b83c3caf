"""Finishes claimed cases of one user in one transaction: makes each ready or merged, and later stores its lessons."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from uuid import UUID

from sqlalchemy import Table, delete, func, insert, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.ports import Embedder
from retrieval.tables.cases import cases
from retrieval.tables.kinds import has_failed, is_trusted
from retrieval.tables.procedures import reflections
from retrieval.tables.profiles import profiles
from writer.advice.settle import advised, settle_advice
from writer.advice.store import failure_rows, store_failures
from writer.audit import Change, note, noted_together
from writer.facts.store import Provenance, store_facts
from writer.procedures import versions
from writer.procedures.ports import Source
from writer.procedures.reflection import ask_to_reflect
from writer.procedures.withdrawal import retire_lessons, withdraw_learned
from writer.profiles import lock_loop
from writer.queue.case import ClaimedCase, Work, close, lock_held, remember_tools
from writer.queue.correction import corrected, earlier_feedback, with_plan
from writer.queue.dedupe import count_again, twins
from writer.queue.sessions import MOST_FACTS
from writer.rewards.feedback import credit_run
from writer.rewards.proof import prove
from writer.vectors import add_vector, as_text


@dataclass(frozen=True, slots=True)
class Finish:
    """The last step of the worker's work on claimed cases, in one transaction of their user.

    Attributes:
        embedder: the model whose vectors are stored.
    """

    connection: AsyncConnection
    user_sub: str
    embedder: Embedder

    async def make_findable(self, batch: Sequence[Work]) -> dict[UUID, str]:
        """Makes the cases ready, or merges them into equal cases, and queues their runs to be learned from.

        Returns "ready" or "merged" for each case; a case that another worker has, or that was deleted, is left out.
        The audit entry for the insert of a case is written here, under the actor that retained the run, because a
        retain writes only the case's row.
        """
        async with noted_together(self.connection):
            if not (held := await self._locked(batch, cases)):
                return {}
            kept = await self._end(held)
            to_learn = [
                {"user_sub": self.user_sub, "id": work.held.row_id, "agent_key": work.held.agent_key, "is_new": True}
                for work in held
            ]
            await self.connection.execute(insert(reflections), to_learn)
        return {work.held.row_id: "merged" if work.held.row_id in kept else "ready" for work in held}

    async def learn(self, batch: Sequence[Work], *, pgvector: bool) -> dict[UUID, str]:
        """Stores the lessons of runs whose cases can be found; of runs that are not new, only the revisions.

        ``pgvector`` says that the database compares vectors.
        Returns "learned" for each run; a run that another worker has, or whose case was deleted, is left out.
        """
        async with noted_together(self.connection):
            held = await self._locked(batch, reflections)
            new = [work for work in held if work.case.is_new]
            await self._store_procedures(held, pgvector=pgvector)
            if new:
                await self._store_lessons(new)
                await self._settle(new)
            await self._close(held)
        return dict.fromkeys((work.held.row_id for work in held), "learned")

    async def _locked(self, batch: Sequence[Work], queue: Table) -> list[Work]:
        """Returns those of the cases that their leases still hold in the queue, locked, with their profiles."""
        retrievals = [work.case.retrieval_id for work in batch if work.case.retrieval_id is not None]
        await lock_loop(self.connection, self.user_sub, {work.held.agent_key for work in batch}, set(retrievals))
        return await lock_held(self.connection, batch, queue)

    async def _close(self, held: Sequence[Work]) -> None:
        """Takes runs off the queue; a new run that a reward showed to have failed meanwhile is queued again."""
        late = [work.held.row_id for work in held if work.case.is_new and _failed(work.now) and not _failed(work.case)]
        mine = reflections.c.user_sub == self.user_sub
        new = [work.held.row_id for work in held if work.case.is_new]
        again = [work.held.row_id for work in held if not work.case.is_new]
        if new:
            await self.connection.execute(delete(reflections).where(mine, reflections.c.id.in_(new)))
        if again:
            done = {"status": "ready", "lease_token": None, "last_error": None, "available_at": func.now()}
            await self.connection.execute(update(reflections).where(mine, reflections.c.id.in_(again)).values(done))
        if late:
            await withdraw_learned(self.connection, self.user_sub, "worker", late)
            await ask_to_reflect(self.connection, self.user_sub, late)

    async def _end(self, batch: Sequence[Work]) -> Mapping[UUID, UUID]:
        """Corrects the cases and takes them off the queue; returns the merged ones, with the cases that they repeat."""
        connection = self.connection
        for work in batch:
            case_id, details = work.held.row_id, {"outcome": work.case.outcome, "reward": work.case.reward}
            await note(connection, Change.of(_owner(work), work.now.source, "insert_case", case_id, **details))
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
                if is_trusted(work.now.reward_source):  # feedback may have come before the worker
                    await prove(connection, self.user_sub, [repeated])
        await self._store_vectors([work for work in batch if work.held.row_id not in kept])
        return kept

    async def _store_vectors(self, batch: Sequence[Work]) -> None:
        """Inserts the vectors of the cases' tasks."""
        for agent_key, group in groupby(sorted(batch, key=_agent), key=_agent):
            mine = list(group)
            rows = [
                {"case_id": work.held.row_id, "vector": as_text(work.vectors[0])}
                for work in mine
                if work.vectors[0] is not None
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

    async def _store_procedures(self, batch: Sequence[Work], *, pgvector: bool) -> None:
        """Stores the procedures that were learned from new runs, and the revisions of those that failed runs used."""
        for work in batch:
            source = Source(self.user_sub, work.held.agent_key, work.held.row_id, self.embedder.model, pgvector)
            vectors = iter(work.vectors)
            for draft in work.taught.drafts:
                vector = next(vectors)
                if work.case.is_new:
                    await versions.add(self.connection, source, draft, vector)
            for used, draft in work.taught.revisions:
                await versions.revise(self.connection, source, used, draft, next(vectors))

    async def _store_lessons(self, batch: Sequence[Work]) -> None:
        """Stores the facts and the tool use of the runs."""
        connection = self.connection
        await remember_tools(connection, batch)
        for agent_key, group in groupby(sorted(batch, key=_agent), key=_agent):
            mine = list(group)
            facts = [
                (fact, Provenance(agent_key, "worker", "run", work.case.created_at, case_id=work.held.row_id))
                for work in mine
                for fact in work.facts
            ]
            seal = next((work.seal for work in mine if work.seal is not None), None)
            if seal is not None:
                for first in range(0, len(facts), MOST_FACTS):
                    await store_facts(connection, seal, agent_key, facts[first : first + MOST_FACTS])

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
