"""Handles retained runs: learns from them, merges repeats, and makes their cases ready."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import groupby, islice
from uuid import UUID

from prometheus_client import Counter

from policy.fit import FIRST_ORDER
from retrieval.errors import (
    CasebankError,
    DatabaseUnavailable,
    Deadlocked,
    EmbedderMisbehaved,
    EmbedderRefused,
    UserErased,
)
from retrieval.ports import Embedder, Vector, embed_each
from retrieval.telemetry import caused_by, log, stage
from writer.errors import LeaseLost
from writer.privacy.master_keys import MasterKeyMismatch
from writer.privacy.seal import SealBroken
from writer.profiles import Profile
from writer.queue.case import ClaimedCase, Work, claimed, used_by
from writer.queue.finish import Finish
from writer.queue.lease import Lease
from writer.queue.queue import Queue
from writer.queue.teaching import Teaching
from writer.replays.profile_replay import replay_if_due

FINISHED = Counter("casebank_worker_cases_total", "Cases that left the queue, by how", ["how"])

MOST_BY_LLM = 16
"""Maximum cases of a batch from which a language model learns; the leases of more cases would end before their turn."""
AT_ONCE = 2
"""Maximum users whose cases are stored at the same time: the worker prepares one user's while the database stores."""
REPLAY_S = 5.0
"""Seconds after which a profile is replayed even if further cases wait in the queue."""


@dataclass(slots=True)
class CaseHandler:
    """Learns from retained runs, merges repeats, and makes cases ready.

    Attributes:
        pgvector: whether the database compares vectors.
        first_order: order of cases that a profile uses until a replay finds a better order.
    """

    queue: Queue
    embedder: Embedder
    teaching: Teaching
    pgvector: bool
    first_order: str = FIRST_ORDER
    _to_replay: dict[tuple[str, str], tuple[float, datetime]] = field(default_factory=dict, init=False)
    """Profiles with finished cases since their last replay, each with the times of the first one's end and claim."""
    _places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE), init=False)

    async def handle(self, leases: Sequence[Lease]) -> None:
        """Finishes the leased cases, each user's together; those from which a language model learns come last.

        Raises:
            DatabaseUnavailable: some of the cases are not finished.
        """
        with stage("work"):
            batch = await self._read(leases)
            await self._finish_together([work for work in batch if not self.teaching.by_llm(work)])
            slow = [work for work in batch if self.teaching.by_llm(work)]
            await self.queue.release([work.held for work in slow[MOST_BY_LLM:]])
            for work in slow[:MOST_BY_LLM]:
                await self._finish_together([work])
        for lease in leases:
            profile = lease.user_sub, lease.agent_key
            self._to_replay.setdefault(profile, (time.monotonic(), lease.claimed_at))

    async def replay(self, *, idle: bool) -> None:
        """Replays those profiles of finished cases that are due: all if ``idle``, else those that waited REPLAY_S.

        A replay takes longer than a case, and if a profile's cases come one by one, only the last needs a replay.

        Raises:
            DatabaseUnavailable: some of the profiles were not replayed.
        """
        with stage("work.replay"):
            for (user_sub, agent_key), (since, claimed_at) in list(self._to_replay.items()):
                if idle or time.monotonic() - since >= REPLAY_S:
                    del self._to_replay[user_sub, agent_key]
                    profile = Profile(user_sub, agent_key, claimed_at)
                    await replay_if_due(self.queue.database, profile, first_order=self.first_order)

    async def _read(self, leases: Sequence[Lease]) -> list[Work]:
        """Returns the leased cases that are still there, the oldest first; each user's rows are read as that user."""
        batch, keyring = [], self.teaching.keyring
        by_user = sorted(leases, key=lambda held: held.user_sub)
        for user_sub, group in groupby(by_user, key=lambda held: held.user_sub):
            held = {lease.row_id: lease for lease in group}
            with suppress(UserErased):
                async with self.queue.database.as_user(user_sub, leases[0].claimed_at) as connection:
                    rows = await connection.execute(claimed(user_sub, leases[0].lease_token, list(held)))
                    cases = [ClaimedCase(*row) for row in rows]
                    key = keyring.remembered(user_sub)
                    if key is None or any(case.key_id != key.key_id for case in cases):
                        # one user's broken key, or one that another process wrapped, is a matter of that user's cases
                        with suppress(SealBroken, MasterKeyMismatch):
                            await keyring.find(connection, user_sub)  # to be remembered, for what is sealed
                    batch += [
                        Work(held[case.id], case, used=await used_by(connection, user_sub, case)) for case in cases
                    ]
        # in the order of retaining, the first of equal runs is the one kept
        return sorted(batch, key=lambda work: work.held.row_id)

    async def _finish_together(self, batch: Sequence[Work]) -> None:
        """Opens the cases, learns from each, and embeds and stores them all in one batch."""
        with stage("work.teach"):
            opened = [work for work in batch if await self._goes_on(work, self.teaching.open)]
            teach = partial(self.teaching.teach, renew=self.queue.renew)
            taught = [work for work in opened if await self._goes_on(work, teach)]
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
                    await self._store([(work, [])])
                    continue
                with caused_by(work.origin, "work.case"):
                    await self.queue.hand_back([work.held], error)
            return
        await self._store([(work, list(islice(vectors, len(some)))) for work, some in zip(batch, texts, strict=True)])

    async def _store(self, batch: Sequence[tuple[Work, Sequence[Vector | None]]]) -> None:
        """Stores the cases, each with the vectors of its first texts; its further texts have no vector.

        The cases of one user are finished together. If that fails, each is finished alone, for the fault may be one's.
        """
        for work, vectors in batch:
            missing: list[Vector | None] = [None] * (len(work.texts) - len(vectors))
            work.vector, *work.trigger_vectors = [*vectors, *missing]
        works = sorted((work for work, _ in batch), key=lambda work: work.held.user_sub)
        with stage("work.finalise"):
            users = [self._store_users(list(group)) for _, group in groupby(works, key=lambda work: work.held.user_sub)]
            for ended in await asyncio.gather(*users, return_exceptions=True):
                if ended is not None:
                    raise ended

    async def _store_users(self, batch: list[Work]) -> None:
        """Finishes cases of one user together, while the cases of few others are finished."""
        async with self._places:
            ended = await self._end_together(batch) if len(batch) > 1 else {}
            for work in batch:
                if (how := ended.get(work.held.row_id)) is None:
                    await self._goes_on(work, self._finalise_alone)
                else:
                    with caused_by(work.origin, "work.case"):
                        _count(work, how)

    async def _end_together(self, batch: Sequence[Work]) -> dict[UUID, str]:
        """Finishes cases of one user together, and returns each one's end; empty: it failed, so try the cases alone."""
        try:
            return await self._finalise(batch)
        except Deadlocked as error:
            log.info("work.one_by_one", error=type(error).__name__)
        except DatabaseUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - one bad case must not stop the others
            log.info("work.one_by_one", error=type(error).__name__)
        for work in batch:
            work.now = work.case
        return {}

    async def _goes_on(self, work: Work, step: Callable[[Work], Awaitable[str | None]]) -> bool:
        """Takes one step of the work on a case and returns True if further steps follow; otherwise counts the end.

        Raises:
            DatabaseUnavailable: it is unknown whether the step was taken.
        """
        with caused_by(work.origin, "work.case"):
            how = await self.queue.attempt([work.held], step(work))
            if how is not None:
                _count(work, how)
        return how is None

    async def _finalise(self, batch: Sequence[Work]) -> dict[UUID, str]:
        """Finishes cases of one user, and returns the end of each: "ready" or "merged"."""
        held = batch[0].held
        async with self.queue.database.as_user(held.user_sub, held.claimed_at) as connection:
            return await Finish(connection, held.user_sub, self.embedder, self.pgvector).all_of(batch)

    async def _finalise_alone(self, work: Work) -> str:
        """Finishes one case, and returns how it ended.

        Raises:
            LeaseLost: another worker has the case, or it is gone; nothing was stored.
        """
        ended = await self._finalise([work])
        if work.held.row_id not in ended:
            raise LeaseLost("the lease ran out, or the case is gone")
        return ended[work.held.row_id]


def _count(work: Work, how: str) -> None:
    """Counts and logs the end of the work on a case."""
    FINISHED.labels(how).inc()
    log.info("work.ended", how=how, case_id=str(work.held.row_id))
