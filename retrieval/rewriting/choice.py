"""Chooses the rewriter of a query: the request's, or else the profile's."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from time import monotonic

from cachetools import TTLCache
from prometheus_client import Counter
from sqlalchemy import select

from retrieval.database.database import Database
from retrieval.database.fast_path import FastStatement
from retrieval.database.parameters import AGENT_KEY, USER_SUB, entered
from retrieval.ports import Rewriter, Rewritten
from retrieval.tables.kinds import Rewrite
from retrieval.tables.profiles import profiles
from retrieval.telemetry import stage

REWRITES = Counter("casebank_rewrites_total", "Queries that were to be rewritten, by who did it", ["by"])

KNOWN_FOR_S = 30.0
"""Time for which a profile's choice is remembered; each retrieve that reads the profile renews it."""


@dataclass(frozen=True, slots=True)
class Asker:
    """Profile that a query is rewritten for, and the time of its user's authorisation."""

    user_sub: str
    authorised_at: datetime
    agent_key: str


LlmRewriters = Callable[[Asker], Rewriter]
"""Maker of the rewriter by language model; the profile's tokens pay for it."""


def known_choices(capacity: int = 10_000, timer: Callable[[], float] = monotonic) -> TTLCache[tuple[str, str], Rewrite]:
    """Returns an empty cache of each profile's rewriter; ``timer`` in seconds."""
    return TTLCache(capacity, KNOWN_FOR_S, timer=timer)


@dataclass(frozen=True, slots=True)
class Rewriting:
    """Rewrites queries before the search.

    A profile's choice must be known before the query is embedded, and the statement of a retrieval, which reads the
    profile, comes after that. So a profile that was not read for KNOWN_FOR_S costs one short statement more; one in use
    costs none, for every retrieve reads it again. A change by another process is known at the next retrieve or then.
    """

    database: Database
    llm: LlmRewriters | None = None
    """Maker of rewriters by language model; None: not configured, so profiles that chose it keep their queries."""
    _known: TTLCache[tuple[str, str], Rewrite] = field(default_factory=known_choices)

    async def rewrite(self, asker: Asker, query: str, wanted: Rewrite | None = None) -> Rewritten:
        """Returns the query to search for; ``wanted`` of None is the profile's choice.

        Raises:
            UserErased, DatabaseUnavailable: see Database.as_user.
        """
        by = wanted or self._known.get((asker.user_sub, asker.agent_key))
        if by is None:
            async with self.database.fast(asker.user_sub, asker.authorised_at) as connection:
                choice: Rewrite = await connection.value(_CHOICE, {"agent_key": asker.agent_key}) or "off"
            by = choice
            self.learn(asker.user_sub, asker.agent_key, by)
        if by == "off":
            return Rewritten(query)
        with stage("retrieve.rewrite"):
            rewriter = self.llm(asker) if self.llm is not None else None
            rewritten = Rewritten(query, degraded=True) if rewriter is None else await rewriter.rewrite(query)
        REWRITES.labels("failed" if rewritten.degraded else rewritten.by).inc()
        return rewritten

    def learn(self, user_sub: str, agent_key: str, choice: Rewrite | None) -> None:
        """Remembers a profile's choice that was just read; or forgets it with None, after a change."""
        self._known.pop((user_sub, agent_key), None)
        if choice is not None:
            self._known[user_sub, agent_key] = choice


_CHOICE: FastStatement[Rewrite] = FastStatement.of(
    select(profiles.c.rewrite).where(
        select(entered().c.entered).scalar_subquery(),
        profiles.c.user_sub == USER_SUB,
        profiles.c.agent_key == AGENT_KEY,
    )
)
