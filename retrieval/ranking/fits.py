"""Reads and caches the fits that replays stored for profiles; each is read once per process."""

from datetime import datetime
from typing import Protocol

from cachetools import LRUCache
from sqlalchemy import select

from policy.fit import Fit
from policy.weights import WeightsError, unpack_fit
from retrieval.database.fast_path import FastConnection, FastStatement
from retrieval.database.parameters import AGENT_KEY, USER_SUB, may_enter
from retrieval.search.profile_settings import ProfileSettings
from retrieval.tables.profiles import replays
from retrieval.telemetry import log


class StoredFit(Protocol):
    """The columns of a row of ``replays`` that serving needs."""

    @property
    def fit(self) -> bytes:
        """The fit, as packed by ``policy.weights.pack_fit``."""

    @property
    def created_at(self) -> datetime:
        """Time of the replay that made the fit."""


class Fits:
    """A cache of the ``capacity`` latest used fits."""

    def __init__(self, capacity: int = 2_000) -> None:
        self._known: LRUCache[tuple[str, str, datetime], Fit | None] = LRUCache(capacity)

    async def of(self, connection: FastConnection, agent_key: str, settings: ProfileSettings | None) -> Fit | None:
        """Returns the fit that replay stored for the profile; None if there is none that this version can read."""
        if settings is None or settings.replayed_at is None:
            return None
        key = connection.user_sub, agent_key, settings.replayed_at
        if key not in self._known:
            for row in await connection.all(_FIT, {"agent_key": agent_key}):  # may be newer than the settings
                fit = None
                try:
                    fit = unpack_fit(row.fit)
                except WeightsError as error:
                    log.warning("replay.refused", why=type(error).__name__)
                self._known[connection.user_sub, agent_key, row.created_at] = self._known[key] = fit
        return self._known.get(key)


_FIT: FastStatement[StoredFit] = FastStatement.of(
    select(replays.c.fit, replays.c.created_at)
    .where(may_enter(), replays.c.user_sub == USER_SUB, replays.c.agent_key == AGENT_KEY)
    .order_by(replays.c.created_at)
)
