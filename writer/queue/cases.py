"""Handles retained runs: corrects what retain counted, merges repeats, and makes their cases ready."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from prometheus_client import Counter

from policy.fit import FIRST_ORDER
from retrieval.telemetry import log, stage
from writer.profiles import Profile
from writer.queue.batches import Batches
from writer.queue.case import Work
from writer.queue.finish import Finish
from writer.queue.lease import Lease
from writer.replays.profile_replay import replay_if_due

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
        """Stores in ``work`` the numbers of its case, by the calls' outputs."""
        await self.teaching.count(work)

    def texts(self, work: Work) -> list[str]:
        """Returns the task."""
        return [work.text.task]

    async def finish(self, finish: Finish, batch: Sequence[Work]) -> dict[UUID, str]:
        """Makes the cases ready, or merges them; returns "ready" or "merged" for each."""
        return await finish.make_findable(batch)

    def ended(self, work: Work, how: str) -> None:
        """Counts and logs the end of the work on a case."""
        FINISHED.labels(how).inc()
        log.info("work.ended", how=how, case_id=str(work.held.row_id))

    async def replay(self, *, idle: bool) -> bool:
        """Replays one of the profiles of finished cases: any if ``idle``, else one that waited REPLAY_S.

        A replay takes longer than a case, and if a profile's cases come one by one, only the last needs a replay.
        Profiles that are not due are passed over. Returns False if none was replayed.

        Raises:
            DatabaseUnavailable: the profile was not replayed.
        """
        with stage("work.replay"):
            for (user_sub, agent_key), (since, claimed_at) in list(self._to_replay.items()):
                if idle or time.monotonic() - since >= REPLAY_S:
                    del self._to_replay[user_sub, agent_key]
                    profile = Profile(user_sub, agent_key, claimed_at)
                    if await replay_if_due(self.queue.database, profile, first_order=self.first_order) is not None:
                        return True
        return False
