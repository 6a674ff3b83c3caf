"""Admission: every request passes here after its user is known and before any work for it begins."""

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
        "/v1/advice",
        "/v1/memory-tools/get_my_goals",
        "/v1/memory-tools/get_tool_suggestions",
        "/v1/memory-tools/recall",
        "/v1/procedures/search",
        "/v1/recall",
        "/v1/retrieve",
        "/v1/rewrite",
    }
)
RETAINS = frozenset({"/v1/retain", "/rest/v1/context_eng_memories"})
BEGIN_AGAIN = "/v1/users/begin-again"

Quotas = Mapping[tuple[Scope, Kind], Quota]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Properties of a request that decide its limits.

    Attributes:
        session: name of the session; None: outside of one.
        agent: name of the agent; None: the body names it, or the request has none.
    """

    method: str
    path: str
    session: str | None = None
    agent: str | None = None

    @property
    def kind(self) -> Kind:
        """Reads or writes, by method and path."""
        asks = self.path in READING_POSTS or (self.path.startswith("/v1/runs/") and self.path.endswith("/known"))
        return "reads" if self.method in {"GET", "HEAD"} or asks else "writes"


@dataclass(frozen=True, slots=True)
class Admission:
    """Lets requests in, or refuses them.

    Attributes:
        quotas: quotas by scope and kind; a scope without one has no limit.
        buckets: tokens left of each quota.
        turns: turns of this process; None: any number of concurrent requests.
        backlog: bound on the queue.
        wait_s: seconds that a request waits for a token before it is refused, so that a flood of refused requests
            cannot keep the process busy either.
    """

    quotas: Quotas
    buckets: Buckets
    turns: Turns | None
    backlog: Backlog
    wait_s: float

    @asynccontextmanager
    async def admitted(self, author: Author, wanted: Wanted) -> AsyncIterator[Sequence[Standing]]:
        """Lets a request in for the time of the block, and yields the rest of the quotas that it used.

        Raises:
            NotNow: the request is refused.
        """
        try:
            try:
                if wanted.path in RETAINS:
                    self.backlog.check(author.user_sub)
                names: dict[Scope, str | None] = {"user": "", "session": wanted.session, "agent": wanted.agent}
                standings = [
                    await self._take(quota, author, name)
                    for scope, name in names.items()
                    if name is not None and (quota := self.quotas.get((scope, wanted.kind)))
                ]
            except UserErased:
                if wanted.path != BEGIN_AGAIN:  # such a user has no quota
                    raise
                standings = []
            turn = await self.turns.enter(author.user_sub) if self.turns else None
        except NotNow as refusal:
            REFUSED.labels(refusal.policy).inc()
            raise
        try:
            yield standings
        finally:
            if self.turns and turn:
                self.turns.leave(turn)

    async def of_agent(self, author: Author, kind: Kind, agent: str) -> None:
        """Takes a token from the quota of an agent that only the body names.

        Raises:
            RateExceeded: the agent's limit is used up.
        """
        quota = self.quotas.get(("agent", kind))
        try:
            if quota:
                await self.buckets.take(quota, author, agent)
        except NotNow as refusal:
            REFUSED.labels(refusal.policy).inc()
            raise

    async def _take(self, quota: Quota, author: Author, name: str) -> Standing:
        """Takes a token, and waits ``wait_s`` at most for one."""
        try:
            return await self.buckets.take(quota, author, name)
        except RateExceeded as refusal:
            await asyncio.sleep(min(self.wait_s, refusal.retry_s))
            if refusal.retry_s > self.wait_s:
                raise
        return await self.buckets.take(quota, author, name)
