"""Admission: every request passes here once it is known whose it is, and before anything is done for it."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from prometheus_client import Counter

from app.admission.backlog import IN_ALL, PER_USER, Backlog
from app.admission.buckets import Buckets
from app.admission.errors import NotNow, RateExceeded
from app.admission.quotas import Kind, Quota, Scope, Standing
from app.admission.turns import AT_ONCE, Turns
from retrieval.errors import UserErased
from writer.author import Author

REFUSED = Counter("casebank_refused_total", "Requests that were not let in, by the limit that they ran into", ["limit"])
for _limit in (AT_ONCE, PER_USER, IN_ALL):
    REFUSED.labels(_limit)  # so that an increase is seen from the first
READING_POSTS = frozenset(
    {
        "/functions/v1/hybrid-search-context-eng",
        "/v1/memory-tools/get_my_goals",
        "/v1/memory-tools/get_tool_suggestions",
        "/v1/memory-tools/recall",
        "/v1/procedures/search",
        "/v1/retrieve",
        "/v1/rewrite",
    }
)
RETAIN = "/v1/retain"
BEGIN_AGAIN = "/v1/users/begin-again"

Quotas = Mapping[tuple[Scope, Kind], Quota]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a request is: whether it reads or writes, whether it adds to the queue, and in which session and agent.

    Attributes:
        begins_again: it is let in for an erased user, too, who has no quota to spend.
    """

    kind: Kind
    retains: bool = False
    session: str | None = None
    agent: str | None = None
    begins_again: bool = False


def kind_of(method: str, path: str) -> Kind:
    """Returns whether such a request reads or writes."""
    asks = path in READING_POSTS or (path.startswith("/v1/runs/") and path.endswith("/known"))
    return "reads" if method in {"GET", "HEAD"} or asks else "writes"


@dataclass(frozen=True, slots=True)
class Admission:
    """Lets requests in, or refuses them.

    Attributes:
        quotas: what is limited; none for what is not.
        buckets: what is left of it.
        turns: the places of this process; None: any number of requests at once.
        backlog: the bound on the queue.
        wait_s: how long a request waits for a token before it is refused, so that a flood of those that are refused
            cannot keep the process busy either.
    """

    quotas: Quotas
    buckets: Buckets
    turns: Turns | None
    backlog: Backlog
    wait_s: float

    @asynccontextmanager
    async def admitted(self, author: Author, wanted: Wanted) -> AsyncIterator[Sequence[Standing]]:
        """Lets a request in for as long as the block runs, and yields what is left of the quotas that it used.

        Raises:
            NotNow: it is not let in.
        """
        try:
            standings = await self._spent(author, wanted)
            turn = await self.turns.enter(author.user_sub) if self.turns else None
        except NotNow as refusal:
            REFUSED.labels(refusal.policy).inc()
            raise
        try:
            yield standings
        finally:
            if self.turns and turn:
                self.turns.leave(turn)

    async def of_agent(self, author: Author, kind: Kind, agent: str) -> Standing | None:
        """Takes a token of the agent, whom only the body names; returns what is left, or None where that is no limit.

        Raises:
            RateExceeded: the agent has used up its requests for now.
        """
        quota = self.quotas.get(("agent", kind))
        try:
            return await self.buckets.take(quota, author, agent) if quota else None
        except NotNow as refusal:
            REFUSED.labels(refusal.policy).inc()
            raise

    async def _spent(self, author: Author, wanted: Wanted) -> list[Standing]:
        try:
            return await self._spend(author, wanted)
        except UserErased:
            if wanted.begins_again:
                return []
            raise

    async def _spend(self, author: Author, wanted: Wanted) -> list[Standing]:
        if wanted.retains:
            self.backlog.check(author.user_sub)
        names: dict[Scope, str | None] = {"user": "", "session": wanted.session, "agent": wanted.agent}
        return [
            await self._take(quota, author, name)
            for scope, name in names.items()
            if name is not None and (quota := self.quotas.get((scope, wanted.kind)))
        ]

    async def _take(self, quota: Quota, author: Author, name: str) -> Standing:
        """Takes a token, and waits for one that comes soon."""
        try:
            return await self.buckets.take(quota, author, name)
        except RateExceeded as refusal:
            await asyncio.sleep(min(self.wait_s, refusal.retry_s))
            if refusal.retry_s > self.wait_s:
                raise
        return await self.buckets.take(quota, author, name)
