"""Handles retained runs: corrects what retain counted, merges repeats, and makes their cases ready.

Two runs of one profile with the same task and plan become one case with a counter.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from prometheus_client import Counter
from sqlalchemy import Update, exists, func, insert, literal, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from policy.channels import words
from policy.fit import FIRST_ORDER
from retrieval.sealed import MOVES, TERMS
from retrieval.tables.cases import cases
from retrieval.tables.columns import TIME
from retrieval.tables.kinds import is_trusted
from retrieval.tables.procedures import reflections
from retrieval.tables.profiles import profiles
from retrieval.tables.runs import runs
from retrieval.telemetry import log, stage
from writer.analysis.calls import StoredRun, error_signatures
from writer.analysis.moves import moves_of
from writer.analysis.recount import recount
from writer.audit import Change, note
from writer.profiles import Profile
from writer.queue.batches import Batches
from writer.queue.case import ClaimedCase, Work, by_agent, close
from writer.queue.correction import corrected, corrected_plan, earlier_feedback
from writer.queue.lease import Lease
from writer.queue.queue import LOOK_S
from writer.replays.profile_replay import replay_if_due
from writer.rewards.proof import prove
from writer.rewards.repeats import OWN_REWARD, one_more
from writer.vectors import add_vector, as_text

FINISHED = Counter("casebank_worker_cases_total", "Cases that left the queue, by how", ["how"])

REPLAY_S = 5.0
"""Seconds after which a profile is replayed even if further cases wait in the queue."""


@dataclass(slots=True)
class CaseHandler(Batches):
    """Merges repeats and makes cases ready; what is learned from their runs comes later, see ``LessonHandler``.

    Attributes:
        first_order: order of cases that a profile uses until a replay finds a better order.
    """

    first_order: str = FIRST_ORDER
    _to_replay: dict[tuple[str, str], tuple[float, datetime]] = field(default_factory=dict, init=False)
    """Profiles with finished cases since their last replay, each with the times of the first one's end and claim."""

    async def handle(self, leases: Sequence[Lease]) -> None:
        """Finishes the leased cases, each user's together.

        Raises:
            DatabaseUnavailable: some of the cases are not finished.
        """
        with stage("work"):
            await self.finish_together(await self.read(leases))
        for lease in leases:
            profile = lease.user_sub, lease.agent_key
            self._to_replay.setdefault(profile, (time.monotonic(), lease.claimed_at))

    async def think(self, work: Work) -> None:
        """Stores in ``work`` the numbers of its case: keyed hashes, and corrections by the calls' outputs."""
        await self.compute(work, _count)

    def texts(self, work: Work) -> list[str]:
        """Returns the task."""
        return [work.text.task]

    async def finish(self, connection: AsyncConnection, batch: Sequence[Work]) -> dict[UUID, str]:
        """Corrects the cases, makes them ready or merges them into equal ones, and queues their runs for the lessons.

        Returns "ready" or "merged" for each. The audit entry for the insert of a case is written here, under the actor
        that retained the run, because a retain writes only the case's row.
        """
        user_sub = batch[0].held.user_sub
        for work in batch:
            details = {"outcome": work.case.outcome, "reward": work.case.reward}
            await note(connection, Change.of(work.owner, work.now.source, "insert_case", work.held.row_id, **details))
            work.now = await earlier_feedback(connection, user_sub, await corrected(connection, work))
        kept = await twins(connection, user_sub, [work.now for work in batch])
        await close(connection, batch, kept)
        for work in batch:
            if (repeated := kept.get(work.held.row_id)) is not None:
                await connection.execute(count_again(user_sub, repeated, work.now))
                merged = Change.of(work.owner, "worker", "merge_case", work.held.row_id, into=str(repeated))
                await note(connection, merged)
                if is_trusted(work.now.reward_source):  # feedback may have come before the worker
                    await prove(connection, user_sub, [repeated])
        await self._store_vectors(connection, [work for work in batch if work.held.row_id not in kept])
        to_learn = [
            {"user_sub": user_sub, "id": work.held.row_id, "agent_key": work.held.agent_key, "is_new": True}
            for work in batch
        ]
        await connection.execute(insert(reflections), to_learn)
        return {work.held.row_id: "merged" if work.held.row_id in kept else "ready" for work in batch}

    async def _store_vectors(self, connection: AsyncConnection, batch: Sequence[Work]) -> None:
        """Inserts the vectors of the cases' tasks."""
        for (user_sub, agent_key), mine in by_agent(batch):
            rows = [
                {"case_id": work.held.row_id, "vector": as_text(work.vectors[0])}
                for work in mine
                if work.vectors[0] is not None
            ]
            if not rows:
                continue
            vector = add_vector(user_sub, agent_key, self.embedder.model, self.embedder.dimension)
            await connection.execute(vector, rows)
            if any(work.case.embedding_model is None for work in mine):
                # The first vector of a profile chooses its space; a later change of model goes through reembed.
                chosen = update(profiles).where(
                    profiles.c.user_sub == user_sub,
                    profiles.c.agent_key == agent_key,
                    profiles.c.embedding_model.is_(None),
                )
                await connection.execute(chosen.values(embedding_model=self.embedder.model))

    def ended(self, work: Work, how: str) -> None:
        """Counts and logs the end of the work on a case."""
        FINISHED.labels(how).inc()
        log.info("work.ended", how=how, case_id=str(work.held.row_id))

    async def replay(self, *, idle: bool) -> bool:
        """Replays one of the profiles of finished cases: any if ``idle``, else one that waited REPLAY_S.

        A replay takes longer than a case, and if a profile's cases come one by one, only the last needs a replay.
        Profiles that are not due are passed over, for LOOK_S. Returns False if none was replayed and none is left.

        Raises:
            DatabaseUnavailable: the profile was not replayed.
        """
        began = time.monotonic()
        with stage("work.replay"):
            for (user_sub, agent_key), (since, claimed_at) in list(self._to_replay.items()):
                if idle or time.monotonic() - since >= REPLAY_S:
                    del self._to_replay[user_sub, agent_key]
                    profile = Profile(user_sub, agent_key, claimed_at)
                    found = await replay_if_due(self.queue.database, profile, first_order=self.first_order)
                    if found is not None or (self._to_replay and time.monotonic() - began >= LOOK_S):
                        return True
        return False


def _count(work: Work, run: StoredRun, opened: Mapping[str, Any]) -> None:
    """Stores in the work the numbers of its run, and the errors of its calls."""
    work.terms = work.seal.numbers(TERMS, words(work.text.task))
    work.moves = work.seal.numbers(MOVES, moves_of(run))
    if run.tool_traces:
        work.counts, work.errors = recount(run), error_signatures(run)
        work.corrected_plan = corrected_plan(work, run, opened["tool_traces"])


_ABORTED = runs.c.status == "aborted"


async def twins(connection: AsyncConnection, user_sub: str, batch: Sequence[ClaimedCase]) -> dict[UUID, UUID]:
    """Returns the cases that repeat a ready case or an earlier case of the batch, each with that older case.

    A repeat has the same task and plan: the same numbers and words in the same order. Near vectors are no repeats,
    because "from Anna to Ben" is near "from Ben to Anna". Runs with different outcomes are no repeats either. Nor is an
    aborted run that may go on, because its case is deleted then.
    """
    names = "agent_key", "kind", "outcome", "message_hash"
    may_go_on = exists().where(runs.c.user_sub == user_sub, runs.c.case_id == cases.c.id, _ABORTED)
    ready = select(cases.c.id, cases.c.created_at, *(cases.c[name] for name in names)).where(
        cases.c.user_sub == user_sub,
        cases.c.agent_key.in_({fresh.agent_key for fresh in batch}),
        cases.c.status == "ready",
        cases.c.message_hash.in_({fresh.message_hash for fresh in batch}),
        ~may_go_on,
    )
    apart = set[UUID]()
    if aborted := [fresh.id for fresh in batch if fresh.outcome == "aborted"]:
        theirs = runs.c.user_sub == user_sub, runs.c.case_id.in_(aborted), _ABORTED
        apart.update(await connection.scalars(select(runs.c.case_id).where(*theirs)))
    oldest: dict[tuple[object, ...], tuple[datetime, UUID]] = {}
    kept: dict[UUID, UUID] = {}
    for row in await connection.execute(ready):
        same = tuple(getattr(row, name) for name in names)
        oldest[same] = min(oldest.get(same, (row.created_at, row.id)), (row.created_at, row.id))
    for fresh in batch:
        if fresh.id in apart:
            continue
        same = tuple(getattr(fresh, name) for name in names)
        if same in oldest:
            kept[fresh.id] = oldest[same][1]
        else:
            oldest[same] = fresh.created_at, fresh.id
    return kept


def count_again(user_sub: str, kept: UUID, fresh: ClaimedCase) -> Update:
    """Returns a statement that counts a repeat in the case that it repeats: one occurrence more, its time, the mean."""
    counted: dict[str, object] = {
        "occurrences": cases.c.occurrences + 1,
        "repeated_at": func.greatest(cases.c.repeated_at, literal(fresh.created_at, TIME)),  # greatest ignores NULL
        "last_used_at": func.now(),
        "own_reward": OWN_REWARD,
    }
    if fresh.reward is not None:
        counted |= one_more(fresh.reward, fresh.reward_source)
    return update(cases).where(cases.c.user_sub == user_sub, cases.c.id == kept).values(counted)
