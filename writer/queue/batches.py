"""Takes a batch of leased cases through the steps that all work on cases has: read, open, think, embed and store."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby, islice, repeat
from operator import attrgetter
from typing import Any, ClassVar, TypeVar
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.errors import (
    CasebankError,
    DatabaseUnavailable,
    Deadlocked,
    EmbedderMisbehaved,
    EmbedderRefused,
    SealBroken,
    UserErased,
)
from retrieval.ports import Embedder, Vector, embed_each
from retrieval.sealed import CaseWords
from retrieval.tasks import all_ended, is_cancelled
from retrieval.telemetry import caused_by, log, stage
from writer.analysis.calls import StoredRun
from writer.audit import noted_together
from writer.errors import LeaseLost
from writer.facts.forms import are_compiled
from writer.privacy.keys import Keyring
from writer.privacy.master_keys import MasterKeyMismatch
from writer.procedures.rules.learners import computed
from writer.profiles import lock_loop
from writer.queue.case import ClaimedCase, Work, claimed, lock_held, used_by
from writer.queue.lease import Lease
from writer.queue.queue import Queue

Result = TypeVar("Result")

SHORT = 8_192
"""Maximum bytes of a run's decrypted payload that is analysed on the event loop; longer runs use a thread.

A run of this size, some 70 failed command lines, holds the loop for up to some 50 ms at a time.
"""
AT_ONCE = 2
"""Maximum transactions that store cases at the same time: the worker prepares one while the database stores."""


@dataclass(slots=True)
class Batches:
    """The steps of the work on batches of cases, of which a handler gives four.

    Attributes:
        keyring: the keys that decrypt the cases.
        goes_without: errors of the embedder for one case alone, after which it is stored without vectors.
    """

    queue: Queue
    embedder: Embedder
    keyring: Keyring
    _places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE), init=False)
    goes_without: ClassVar[tuple[type[CasebankError], ...]] = (EmbedderRefused,)

    async def think(self, work: Work) -> None:
        """Stores in ``work`` what its opened case tells."""
        raise NotImplementedError

    def texts(self, work: Work) -> list[str]:
        """Returns the texts whose vectors are stored."""
        raise NotImplementedError

    async def finish(self, connection: AsyncConnection, batch: Sequence[Work]) -> dict[UUID, str]:
        """Stores what was found for locked cases of one user, takes them off the queue and returns the end of each."""
        raise NotImplementedError

    def ended(self, work: Work, how: str) -> None:
        """Counts and logs the end of the work on a case."""
        raise NotImplementedError

    async def read(self, leases: Sequence[Lease]) -> list[Work]:
        """Returns the leased cases that are still there, the oldest first; each user's rows are read as that user."""
        batch, keyring = [], self.keyring
        by_user = sorted(leases, key=lambda held: held.user_sub)
        for user_sub, group in groupby(by_user, key=lambda held: held.user_sub):
            held = {lease.row_id: lease for lease in group}
            with suppress(UserErased):
                async with self.queue.database.as_user(user_sub, leases[0].claimed_at) as connection:
                    mine = claimed(user_sub, leases[0].lease_token, list(held), self.queue.table)
                    rows = await connection.execute(mine)
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

    async def finish_together(self, batch: Sequence[Work]) -> None:
        """Opens each case and thinks about it before the next is opened; embeds and stores them all in one batch."""
        with stage("work.teach"):
            ready = [
                work
                for work in batch
                if await self._goes_on(work, self._open) and await self._goes_on(work, self.think)
            ]
        if ready:
            await self._embed(ready)

    async def _open(self, work: Work) -> None:
        """Decrypts the case's task, plan and payload with its user's key.

        Raises:
            LeaseLost: the user's key is gone, because the user was erased.
        """
        held = work.held
        words = self.keyring.remembered(held.user_sub)
        if words is None:
            async with self.queue.database.as_user(held.user_sub, held.claimed_at) as connection:
                words = await self.keyring.find(connection, held.user_sub)
        if words is None:
            raise LeaseLost("the user's key is gone")
        work.opened, work.payload_bytes = words.open_payload(held.row_id, work.case.payload)
        work.origin = work.opened.get("origin", {})  # older cases have none
        work.seal = words
        work.text = CaseWords(work.case.task, work.case.plan)
        if work.case.words is not None:
            work.text = words.open_case(held.row_id, work.case.words)

    async def compute(
        self, work: Work, act: Callable[[Work, StoredRun, Mapping[str, Any]], Result]
    ) -> tuple[StoredRun, Result]:
        """Returns the run of an opened case, and the result of the act.

        The act is in a thread if the run is long, or its turns may be the first, which wait for patterns to compile.
        """
        opened, work.opened = work.opened, {}
        short = work.payload_bytes <= SHORT and (not opened["turns"] or are_compiled())
        if short:
            await asyncio.sleep(0)  # lets others have the event loop between two runs
        told = opened["tool_traces"], opened["turns"]
        run = StoredRun(work.text.task, work.case.outcome, *told, work.text.plan, short)
        return run, await computed(run, act, work, run, opened)

    async def _embed(self, batch: Sequence[Work]) -> None:
        """Embeds the cases' texts, all at once, and finishes the cases.

        If the embedder rejects the texts, the cases go one by one. A text that is refused even alone would be refused
        again: its case is stored without vectors, and ``casebank reembed`` adds them later. After any other error the
        cases go back to the queue.
        """
        texts = [self.texts(work) for work in batch]
        together = [text for some in texts for text in some]
        try:
            with stage("work.embed"):
                vectors: Iterator[Vector | None] = iter(await embed_each(self.embedder, together) if together else [])
        except CasebankError as error:
            if is_cancelled():
                return  # the error may be the cancellation's; the queue releases the cases
            if isinstance(error, EmbedderRefused | EmbedderMisbehaved) and len(batch) > 1:
                for each in batch:  # the fault may be one case's, and must not be the others'
                    await self._embed([each])
                return
            if not isinstance(error, self.goes_without):
                for work in batch:
                    with caused_by(work.origin, "work.case"):
                        await self.queue.hand_back([work.held], error)
                return
            for work in batch:
                log.warning("work.no_vector", case_id=str(work.held.row_id))
            vectors = repeat(None)
        for work, some in zip(batch, texts, strict=True):
            work.vectors = list(islice(vectors, len(some)))
        with stage("work.finalise"):
            user = attrgetter("held.user_sub")
            by_user = groupby(sorted(batch, key=user), key=user)
            await all_ended([self._store(list(group)) for _, group in by_user])

    async def _store(self, batch: Sequence[Work]) -> None:
        """Finishes cases of one user together, while the cases of few others are finished.

        If that fails, each case is finished alone, for the fault may be one's.
        """
        async with self._places:
            ended: dict[UUID, str] = {}
            if len(batch) > 1:
                try:
                    ended = await self._finalise(batch)
                except Exception as error:  # one bad case must not stop the others
                    if isinstance(error, DatabaseUnavailable) and not isinstance(error, Deadlocked):
                        raise
                    log.info("work.one_by_one", error=type(error).__name__)
            for work in batch:
                if (how := ended.get(work.held.row_id)) is None:
                    await self._goes_on(work, self._finalise_alone)
                else:
                    with caused_by(work.origin, "work.case"):
                        self.ended(work, how)

    async def _goes_on(self, work: Work, step: Callable[[Work], Awaitable[str | None]]) -> bool:
        """Takes one step of the work on a case and returns True if further steps follow; otherwise counts the end.

        Raises:
            DatabaseUnavailable: it is unknown whether the step was taken.
        """
        with caused_by(work.origin, "work.case"):
            how = await self.queue.attempt([work.held], step(work))
            if how is not None:
                self.ended(work, how)
        return how is None

    async def _finalise(self, batch: Sequence[Work]) -> dict[UUID, str]:
        """Finishes those cases of one user that their leases still hold, in one transaction; returns their ends."""
        held = batch[0].held
        agents = {work.held.agent_key for work in batch}
        retrievals = {work.case.retrieval_id for work in batch if work.case.retrieval_id is not None}
        async with (
            self.queue.database.as_user(held.user_sub, held.claimed_at) as connection,
            noted_together(connection),
        ):
            await lock_loop(connection, held.user_sub, agents, retrievals)
            locked = await lock_held(connection, batch, self.queue.table)
            return await self.finish(connection, locked) if locked else {}

    async def _finalise_alone(self, work: Work) -> str:
        """Finishes one case, and returns how it ended.

        Raises:
            LeaseLost: another worker has the case, or it is gone; nothing was stored.
        """
        ended = await self._finalise([work])
        if work.held.row_id not in ended:
            raise LeaseLost("the lease ran out, or the case is gone")
        return ended[work.held.row_id]
