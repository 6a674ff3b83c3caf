"""Whether a query is rewritten and by whom: as the request says, or else as its profile has it."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from prometheus_client import Counter
from sqlalchemy import select

from retrieval.database.database import Database
from retrieval.database.fast_path import FastStatement
from retrieval.database.parameters import AGENT_KEY, USER_SUB, entered
from retrieval.kinds import Rewrite
from retrieval.ports import Rewriter, Rewritten
from retrieval.rewriting.rules import RuleRewriter
from retrieval.schema import profiles
from retrieval.telemetry import stage

REWRITES = Counter("casebank_rewrites_total", "Queries that were to be rewritten, by who did it", ["by"])

KNOWN_FOR_S = 30.0
"""How long a profile's wish is relied on; each retrieve that reads the profile anyway renews it."""


@dataclass(frozen=True, slots=True)
class Asker:
    """For whom a query is rewritten, and since when they may ask."""

    user_sub: str
    authorised_at: datetime
    agent_key: str


LlmRewriters = Callable[[Asker], Rewriter]
"""Makes the rewriter that asks a language model at the asker's expense."""


class Wishes:
    """Which rewriter the profiles want, at most ``capacity`` of them, the latest, each known for a short time."""

    def __init__(self, capacity: int = 10_000, clock: Callable[[], float] = time.monotonic) -> None:
        """Starts with nothing known; ``clock`` in seconds."""
        self._capacity = capacity
        self._clock = clock
        self._known: OrderedDict[tuple[str, str], tuple[Rewrite, float]] = OrderedDict()

    def get(self, profile: tuple[str, str]) -> Rewrite | None:
        """Returns what the profile wants, or None if that is not known or was too long ago."""
        wish, until = self._known.get(profile, (None, 0.0))
        return wish if self._clock() < until else None

    def learn(self, profile: tuple[str, str], wish: Rewrite | None) -> None:
        """Remembers what the profile wants, or with None forgets it."""
        self._known.pop(profile, None)
        if wish is not None:
            self._known[profile] = wish, self._clock() + KNOWN_FOR_S
        if len(self._known) > self._capacity:
            self._known.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Rewriting:
    """Rewrites queries before anything is searched for.

    A wish must be known before the query is embedded, and the statement of a retrieval, which reads the profile, comes
    after that. So a profile that was not seen for KNOWN_FOR_S costs one short statement more; one in use costs none,
    for every retrieve tells its wish again. What another process changed is known with the next retrieve, or then.
    """

    database: Database
    llm: LlmRewriters | None = None
    """None: no language model is configured, and who wants one searches for the query as it is."""
    _wishes: Wishes = field(default_factory=Wishes)

    async def rewrite(self, asker: Asker, query: str, wanted: Rewrite | None = None) -> Rewritten:
        """Returns what to search for; ``wanted`` of None is what the profile wants.

        Raises:
            UserErased, DatabaseUnavailable: see Database.as_user.
        """
        by = wanted or self._wishes.get((asker.user_sub, asker.agent_key)) or await self._wish(asker)
        if by == "off":
            return Rewritten(query)
        with stage("retrieve.rewrite"):
            rewriter = self._rewriter(asker, by)
            rewritten = Rewritten(query, degraded=True) if rewriter is None else await rewriter.rewrite(query)
        REWRITES.labels("failed" if rewritten.degraded else rewritten.by).inc()
        return rewritten

    def learn(self, user_sub: str, agent_key: str, wish: Rewrite | None) -> None:
        """Remembers what a profile wants, as it was just read; or forgets it with None, because it was changed."""
        self._wishes.learn((user_sub, agent_key), wish)

    def _rewriter(self, asker: Asker, by: Rewrite) -> Rewriter | None:
        if by == "rules":
            return RuleRewriter()
        return self.llm(asker) if self.llm is not None else None

    async def _wish(self, asker: Asker) -> Rewrite:
        async with self.database.fast(asker.user_sub, asker.authorised_at) as connection:
            wish = await connection.value(_WISH, {"agent_key": asker.agent_key}) or "off"
        self.learn(asker.user_sub, asker.agent_key, wish)
        return wish


_WISH: FastStatement[Rewrite] = FastStatement.of(
    select(profiles.c.rewrite).where(
        select(entered().c.entered).scalar_subquery(),
        profiles.c.user_sub == USER_SUB,
        profiles.c.agent_key == AGENT_KEY,
    )
)
