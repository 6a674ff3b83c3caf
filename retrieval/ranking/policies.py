"""Reads and caches the learned policies and the fits of replays that serve; each is read once per process."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from cachetools import LRUCache
from prometheus_client import Counter
from sqlalchemy import Integer, select
from sqlalchemy.dialects.postgresql import ARRAY

from policy import features
from policy.decide import CANDIDATE, DEFAULT, SERVING, Policy
from policy.fit import Fit
from policy.inputs import CASE, QUERY
from policy.weights import WeightsCorrupt, WeightsError, WrongFeatureVersion, unpack, unpack_fit
from retrieval.database.fast_path import FastConnection, FastStatement, Record
from retrieval.database.parameters import AGENT_KEY, USER_SUB, may_enter, parameter
from retrieval.search.profile_settings import ProfileSettings
from retrieval.tables.columns import columns_of
from retrieval.tables.profiles import policies, replays
from retrieval.telemetry import log

DIFFERS = "differs"
"""Name of a policy's metric: the share of decisions on which the policy would serve another slate."""
LEARNED = "q-"
"""Prefix of the name of a learned policy; the number of its version follows."""
REFUSED = Counter("casebank_policies_refused_total", "Policies that could not be loaded, by why", ["why"])


_Key = tuple[str, str, int, datetime]
"""User, agent, version and time of a policy; the time is needed because an erased user's versions begin at 1 again."""


class Policies:
    """A cache of the ``capacity`` latest used policies.

    If a policy cannot be loaded, the default serves in its place.
    """

    def __init__(self, capacity: int = 2_000) -> None:
        self._known: LRUCache[_Key, Policy | None] = LRUCache(capacity)

    async def arms(
        self, connection: FastConnection, agent_key: str, settings: ProfileSettings | None
    ) -> dict[str, Policy | None]:
        """Returns the policy of each live arm: the default's is None; without arms whose policy cannot be loaded."""
        if settings is None or not settings.learning:
            return {DEFAULT: None}
        user_sub = connection.user_sub
        live = {
            SERVING: (settings.serving, settings.serving_since),
            CANDIDATE: (settings.candidate, settings.candidate_since),
        }
        wanted = {arm: (user_sub, agent_key, version, since) for arm, (version, since) in live.items() if version}
        loaded = {key: self._known[key] for key in wanted.values() if key in self._known}
        if missing := [key[2] for key in wanted.values() if key not in loaded]:
            rows = await connection.all(_WEIGHTS, {"agent_key": agent_key, "versions": missing})
            for row in rows:
                policy: Policy | None = None
                try:
                    policy = replace(policy_of(row), differs=row.differs or 1.0)
                except WeightsError as error:
                    REFUSED.labels(type(error).__name__).inc()
                    log.warning("policy.refused", why=type(error).__name__, version=row.version)
                key = user_sub, agent_key, row.version, row.created_at
                self._known[key] = loaded[key] = policy
        arms = {arm: known for arm, key in wanted.items() if (known := loaded.get(key)) is not None}
        return {DEFAULT: None, **arms}


def policy_of(row: Any) -> Policy:
    """Returns the policy that a row of ``policies`` stores, by its version, weights, checksum and blend.

    Raises:
        WeightsError: the weights are corrupt, or were trained on other inputs.
    """
    head = unpack(row.weights, row.checksum, features.VERSION)
    if (head.linear.shape[-1], head.query_linear.shape[-1]) != (len(CASE), len(QUERY)):
        raise WrongFeatureVersion("trained on other inputs")
    if not head.is_finite:
        raise WeightsCorrupt("a weight is no number")
    return Policy(name_of(row.version), head, row.blend)


def name_of(version: int) -> str:
    """Returns the name that decisions have for the learned policy of this version."""
    return f"{LEARNED}{version}"


def number_of(name: str) -> int | None:
    """Returns the version of the learned policy with this name; None for the default's name."""
    number = name.removeprefix(LEARNED)
    return int(number) if name.startswith(LEARNED) and number.isdigit() else None


_WEIGHTS: FastStatement[Record] = FastStatement(
    select(
        *columns_of(policies, "version created_at weights checksum blend"),
        policies.c.metrics[DIFFERS].as_float().label(DIFFERS),
    )
    .where(
        may_enter(),
        policies.c.user_sub == USER_SUB,
        policies.c.agent_key == AGENT_KEY,
        policies.c.version == parameter("versions", ARRAY(Integer)).any_(),
    )
    .order_by(policies.c.version)
)


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


_FIT: FastStatement[Record] = FastStatement(
    select(replays.c.fit, replays.c.created_at)
    .where(may_enter(), replays.c.user_sub == USER_SUB, replays.c.agent_key == AGENT_KEY)
    .order_by(replays.c.created_at)
)
