"""Learns from runs whose cases can be found: from new ones, and again from those that a later reward calls failed."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID

from retrieval.errors import CasebankError, EmbedderMisbehaved, EmbedderRefused
from retrieval.telemetry import log, stage
from writer.analysis.placeholders import without_placeholders
from writer.queue.batches import Batches
from writer.queue.case import Work
from writer.queue.finish import Finish
from writer.queue.lease import Lease

MOST_BY_LLM = 16
"""Maximum runs of a batch that a language model reads; the leases of more runs would end before their turn."""


@dataclass(slots=True)
class LessonHandler(Batches):
    """Learns procedures, facts and failures from runs, and credits what they used; or only revises what they used.

    Attributes:
        between: awaited after each run that a language model read: new cases need not wait for several answers.
    """

    between: Callable[[], Awaitable[object]]
    goes_without: ClassVar[tuple[type[CasebankError], ...]] = (EmbedderRefused, EmbedderMisbehaved)

    async def handle(self, leases: Sequence[Lease]) -> None:
        """Learns from the leased runs, each user's together; those that a language model reads come last, one by one.

        Raises:
            DatabaseUnavailable: from some of the runs nothing is learned.
        """
        with stage("work.learn"):
            batch = await self.read(leases)
            await self.finish_together([work for work in batch if not self.teaching.by_llm(work)])
            slow = [work for work in batch if self.teaching.by_llm(work)]
            await self.queue.release([work.held for work in slow[MOST_BY_LLM:]])
            for work in slow[:MOST_BY_LLM]:
                await self.finish_together([work])
                await self.between()

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
