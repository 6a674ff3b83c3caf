"""Chooses the rewriter of a query: the one that the request names, or else the one that the profile names."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from cachetools import TTLCache
from prometheus_client import Counter
from sqlalchemy import select

from retrieval.database.database import Database
from retrieval.database.fast_path import FastStatement
from retrieval.database.parameters import AGENT_KEY, USER_SUB, may_enter
from retrieval.ports import Model
from retrieval.rewriting.llm import Rewritten, rewritten_by
from retrieval.tables.kinds import Rewrite
from retrieval.tables.profiles import profiles
from retrieval.telemetry import stage

REWRITES = Counter("casebank_rewrites_total", "Queries that were to be rewritten, by who did it", ["by"])

KNOWN_FOR_S = 30.0
"""Time in seconds for which a profile's rewriter is cached; each retrieve that reads the profile renews it."""


@dataclass(frozen=True, slots=True)
class Asker:
    """Profile for which a query is rewritten, and the time at which its user was authorised."""

    user_sub: str
    authorised_at: datetime
    agent_key: str


@dataclass(frozen=True, slots=True)
class Rewriting:
    """Rewrites queries before the search.

    A profile's rewriter must be known before the query is embedded, but the statement that reads the profile comes
    after that. So a profile that was not read for KNOWN_FOR_S costs one more short statement; a profile in use costs
    none, because every retrieve reads it again. A change by another process takes effect after the next retrieve, or
    after KNOWN_FOR_S.
    """

    database: Database
    llm: Callable[[Asker], Model] | None = None
    """Function that returns a language model whose tokens count for the profile; None: none is configured."""
    _known: TTLCache[tuple[str, str], Rewrite] = field(default_factory=lambda: TTLCache(10_000, KNOWN_FOR_S))

    async def rewrite(self, asker: Asker, query: str, wanted: Rewrite | None = None) -> Rewritten:
        """Returns the query to search for; ``wanted`` is the rewriter that the request names, None the profile's."""
        by = wanted or self._known.get((asker.user_sub, asker.agent_key))
        if by is None:
            async with self.database.fast(asker.user_sub, asker.authorised_at) as connection:
                choice: Rewrite = await connection.value(_CHOICE, {"agent_key": asker.agent_key}) or "off"
            by = choice
            self.learn(asker.user_sub, asker.agent_key, by)
        if by == "off":
            return Rewritten(query)
        with stage("retrieve.rewrite"):
            failed = Rewritten(query, degraded=True)
            rewritten = failed if self.llm is None else await rewritten_by(self.llm(asker), query)
        REWRITES.labels("failed" if rewritten.degraded else rewritten.by).inc()
        return rewritten

    def learn(self, user_sub: str, agent_key: str, choice: Rewrite | None) -> None:
        """Caches the rewriter that was just read for a profile; None: the settings changed, and it is forgotten."""
        self._known.pop((user_sub, agent_key), None)
        if choice is not None:
            self._known[user_sub, agent_key] = choice


_CHOICE: FastStatement[Rewrite] = FastStatement.of(
    select(profiles.c.rewrite).where(may_enter(), profiles.c.user_sub == USER_SUB, profiles.c.agent_key == AGENT_KEY)
)
