"""Learns from runs whose cases can be found: from new ones, and again from those that a later reward calls failed."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import ClassVar
from uuid import UUID

from retrieval.errors import CasebankError, EmbedderMisbehaved, EmbedderRefused
from retrieval.tasks import all_ended
from retrieval.telemetry import log, stage
from writer.analysis.placeholders import without_placeholders
from writer.queue.batches import Batches
from writer.queue.case import Work
from writer.queue.finish import Finish
from writer.queue.lease import Lease

READ_AT_ONCE = 4
"""Maximum number of runs that a language model reads for this worker at the same time, once it answered quickly."""
QUICK_S = 5.0
"""Longest time in seconds that the model may take before it is asked about READ_AT_ONCE runs at the same time.

A server that answers one request after the other then answers the last one within the time that a request may take.
"""


@dataclass(slots=True)
class LessonHandler(Batches):
    """Learns procedures, facts and failures from runs, and credits what they used; or only revises what they used.

    Attributes:
        pgvector: true if the database compares vectors.
    """

    pgvector: bool = True
    goes_without: ClassVar[tuple[type[CasebankError], ...]] = (EmbedderRefused, EmbedderMisbehaved)
    _asked_last: str = field(default="", init=False)
    """The last user whose run a language model read; the users after this one, by name, come first."""
    quick_s: float = field(default=QUICK_S, init=False)
    was_quick: bool = field(default=False, init=False)
    """True if the language model last read its runs within ``quick_s``."""

    async def handle(self, leases: Sequence[Lease]) -> None:
        """Learns from the leased runs, each user's together, and then from some of those that a language model reads.

        The model reads one run, or READ_AT_ONCE runs beside each other if it answered quickly the time before. The
        others are queued again at once: neither new cases nor other workers wait for several answers, one after the
        other.

        Raises:
            DatabaseUnavailable: some of the runs are not learned from.
        """
        with stage("work.learn"):
            batch = await self.read(leases)
            slow = self._by_turns(filter(self.teaching.by_llm, batch))
            asked = slow[: READ_AT_ONCE if self.was_quick else 1]
            await self.queue.release([work.held for work in slow[len(asked) :]])
            await self.finish_together([work for work in batch if not self.teaching.by_llm(work)])
            if asked:
                self._asked_last, began = asked[-1].held.user_sub, time.monotonic()
                await all_ended([self.finish_together([work]) for work in asked])
                self.was_quick = time.monotonic() - began <= self.quick_s

    def _by_turns(self, works: Iterable[Work]) -> list[Work]:
        """Returns the works, which come in the order of time, in the order in which their users take turns."""
        turns, numbered = Counter[str](), list[tuple[tuple[int, bool, str], Work]]()
        for work in works:
            user = work.held.user_sub
            numbered.append(((turns[user], user <= self._asked_last, user), work))
            turns[user] += 1
        return [work for _, work in sorted(numbered, key=itemgetter(0))]

    async def think(self, work: Work) -> None:
        """Stores in ``work`` what is learned from its run."""
        await self.teaching.teach(work, self.queue.renew)

    def texts(self, work: Work) -> list[str]:
        """Returns the triggers of the learned procedures."""
        return list(map(without_placeholders, work.taught.triggers()))

    async def finish(self, finish: Finish, batch: Sequence[Work]) -> dict[UUID, str]:
        """Stores the lessons; returns "learned" for each run."""
        return await finish.learn(batch, pgvector=self.pgvector)

    def ended(self, work: Work, how: str) -> None:
        """Logs the end of the work on a run."""
        log.info("lessons.ended", how=how, case_id=str(work.held.row_id))
