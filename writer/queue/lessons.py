"""Learns from runs whose cases can be found: from new ones, and again from those that a later reward calls failed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar
from uuid import UUID

from retrieval.errors import CasebankError, EmbedderMisbehaved, EmbedderRefused
from retrieval.telemetry import log, stage
from writer.analysis.placeholders import without_placeholders
from writer.queue.batches import Batches
from writer.queue.case import Work
from writer.queue.finish import Finish
from writer.queue.lease import Lease


@dataclass(slots=True)
class LessonHandler(Batches):
    """Learns procedures, facts and failures from runs, and credits what they used; or only revises what they used."""

    goes_without: ClassVar[tuple[type[CasebankError], ...]] = (EmbedderRefused, EmbedderMisbehaved)
    _read_last: str = field(default="", init=False)
    """The user whose run a language model read last; the users after this one, by name, come first."""

    async def handle(self, leases: Sequence[Lease]) -> None:
        """Learns from the leased runs, each user's together, and then from one of those that a language model reads.

        The others are queued again at once: neither new cases nor other workers wait for several answers.

        Raises:
            DatabaseUnavailable: some of the runs are not learned from.
        """
        with stage("work.learn"):
            batch = await self.read(leases)
            slow = sorted(
                filter(self.teaching.by_llm, batch),
                key=lambda work: (work.held.user_sub <= self._read_last, work.held.user_sub, work.held.row_id),
            )
            await self.queue.release([work.held for work in slow[1:]])
            await self.finish_together([work for work in batch if not self.teaching.by_llm(work)])
            if slow:
                self._read_last = slow[0].held.user_sub
                await self.finish_together(slow[:1])

    async def think(self, work: Work) -> None:
        """Stores in ``work`` what is learned from its run."""
        await self.teaching.teach(work, self.queue.renew)

    def texts(self, work: Work) -> list[str]:
        """Returns the triggers of the learned procedures."""
        return list(map(without_placeholders, work.taught.triggers()))

    async def finish(self, finish: Finish, batch: Sequence[Work]) -> dict[UUID, str]:
        """Stores the lessons; returns "learned" for each run."""
        return await finish.learn(batch)

    def ended(self, work: Work, how: str) -> None:
        """Logs the end of the work on a run."""
        log.info("lessons.ended", how=how, case_id=str(work.held.row_id))
