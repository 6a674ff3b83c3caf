"""The learned policies that serve: each version is read once per process and remembered."""

from dataclasses import replace
from datetime import datetime
from typing import Protocol

from cachetools import LRUCache
from prometheus_client import Counter
from sqlalchemy import Integer, Text, bindparam, cast, select
from sqlalchemy.dialects.postgresql import ARRAY

from policy import features
from policy.decide import CANDIDATE, DEFAULT, SERVING, Policy
from policy.inputs import CASE, QUERY
from policy.weights import WeightsCorrupt, WeightsError, WrongFeatureVersion, unpack
from retrieval.database.fast_path import FastConnection, FastStatement
from retrieval.database.parameters import AGENT_KEY, entered
from retrieval.search.fleet import follows
from retrieval.search.profile_settings import ProfileSettings
from retrieval.tables.columns import SHARED
from retrieval.tables.kinds import Fleet
from retrieval.tables.policies import policies
from retrieval.telemetry import log

DIFFERS = "differs"
"""Among a policy's metrics: the share of decisions on which it would serve another slate."""
LEARNED = "q-"
"""Prefix of the names of a profile's learned policies; the number follows."""
OF_FLEET = "f-"
"""Prefix of the names of a fleet's policies."""
REFUSED = Counter("casebank_policies_refused_total", "Policies that could not be loaded, by why", ["why"])


class StoredPolicy(Protocol):
    """A row of ``policies``, as far as a decision needs it: the head as ``policy.weights`` packs it, and its blend."""

    @property
    def user_sub(self) -> str:
        """Owner of the policy; SHARED: a fleet."""

    @property
    def version(self) -> int:
        """Number of the policy, counted within its profile."""

    @property
    def created_at(self) -> datetime:
        """Time of training."""

    @property
    def weights(self) -> bytes:
        """The packed head."""

    @property
    def checksum(self) -> bytes:
        """Checksum of the weights."""

    @property
    def blend(self) -> float:
        """Weight of the learned part, 0 to 1."""


class ServedPolicy(StoredPolicy, Protocol):
    """A row of ``policies``, as far as serving needs it."""

    @property
    def differs(self) -> float | None:
        """Share of decisions on which it would serve another slate; None if not counted."""


_Key = tuple[str, str, int, datetime]
"""User, or SHARED, agent, version and time: the versions of a user who was erased begin at 1 again."""


class Policies:
    """The heads in memory, at most ``capacity``, the latest used.

    A policy that cannot be loaded leaves its arm to the default. ``fleet`` chooses the profiles that follow a fleet.
    """

    def __init__(self, fleet: Fleet = "choice", capacity: int = 2_000) -> None:
        self._fleet = fleet
        self._known: LRUCache[_Key, Policy | None] = LRUCache(capacity)

    async def arms(
        self, connection: FastConnection, agent_key: str, settings: ProfileSettings | None
    ) -> dict[str, Policy | None]:
        """Returns each live arm's policy: the default's is None; an arm whose policy cannot be loaded is left out.

        A profile that receives and has no serving policy of its own gets its fleet's policies in the missing arms.

        Args:
            connection: connection of the policies' user.
            agent_key: the other half of the profile's name.
            settings: the row of the profile with the live versions, see ``ProfileSettings``; None: no profile.
        """
        if settings is None or not settings.learning:
            return {DEFAULT: None}
        wanted = self._wanted(connection.user_sub, agent_key, settings)
        loaded = {key: self._known[key] for key in wanted.values() if key in self._known}
        for owner in {key[0] for key in wanted.values() if key not in loaded}:
            missing = [key[2] for key in wanted.values() if key not in loaded and key[0] == owner]
            parameters = {"owner": owner, "agent_key": agent_key, "versions": missing}
            rows = await connection.all(_WEIGHTS, parameters)
            for row in rows:
                policy: Policy | None = None
                try:
                    policy = replace(policy_of(row), differs=row.differs or 1.0)
                except WeightsError as error:
                    REFUSED.labels(type(error).__name__).inc()
                    log.warning("policy.refused", why=type(error).__name__, version=row.version)
                key = owner, agent_key, row.version, row.created_at
                self._known[key] = loaded[key] = policy
        arms = {arm: live for arm, key in wanted.items() if (live := loaded.get(key)) is not None}
        return {DEFAULT: None, **arms}

    def _wanted(self, user_sub: str, agent_key: str, settings: ProfileSettings) -> dict[str, _Key]:
        """Returns the live policy of each arm."""
        own = {
            SERVING: (user_sub, settings.serving, settings.serving_since),
            CANDIDATE: (user_sub, settings.candidate, settings.candidate_since),
        }
        fleet = {
            SERVING: (SHARED, settings.fleet_serving, settings.fleet_serving_since),
            CANDIDATE: (SHARED, settings.fleet_candidate, settings.fleet_candidate_since),
        }
        follower = follows(self._fleet, settings, has_own=bool(settings.serving))
        live = {arm: fleet[arm] if follower and not own[arm][1] else own[arm] for arm in own}
        return {arm: (owner, agent_key, version, since) for arm, (owner, version, since) in live.items() if version}


def policy_of(row: StoredPolicy) -> Policy:
    """Returns the policy in a row of ``policies``.

    Raises:
        WeightsError: its weights are corrupt, or were trained on other inputs.
    """
    head = unpack(row.weights, row.checksum, features.VERSION)
    if (head.linear.shape[-1], head.query_linear.shape[-1]) != (len(CASE), len(QUERY)):
        raise WrongFeatureVersion("trained on other inputs")
    if not head.is_finite:
        raise WeightsCorrupt("a weight is no number")
    return Policy(name_of(row.user_sub, row.version), head, row.blend)


def name_of(user_sub: str, version: int) -> str:
    """Returns the name of a policy in decisions: a user's, or a fleet's where that is SHARED."""
    return f"{OF_FLEET if user_sub == SHARED else LEARNED}{version}"


def number_of(name: str) -> int | None:
    """Returns the version in the name of a learned policy; None for the default's name."""
    kind, number = name[: len(LEARNED)], name[len(LEARNED) :]
    return int(number) if kind in {LEARNED, OF_FLEET} and number.isdigit() else None


_WEIGHTS: FastStatement[ServedPolicy] = FastStatement.of(
    select(
        *(policies.c[name] for name in ("user_sub", "version", "created_at", "weights", "checksum", "blend")),
        policies.c.metrics[DIFFERS].as_float().label(DIFFERS),
    )
    .where(
        select(entered().c.entered).scalar_subquery(),
        policies.c.user_sub == cast(bindparam("owner", type_=Text), Text),
        policies.c.agent_key == AGENT_KEY,
        policies.c.version == cast(bindparam("versions", type_=ARRAY(Integer)), ARRAY(Integer)).any_(),
    )
    .order_by(policies.c.version)
)
