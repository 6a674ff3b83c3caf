"""The learned policies that serve: read when a version is new to the process, and remembered by version."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from prometheus_client import Counter
from sqlalchemy import Integer, bindparam, cast, select
from sqlalchemy.dialects.postgresql import ARRAY

from policy import features
from policy.decide import CANDIDATE, DEFAULT, SERVING, Policy
from policy.weights import WeightsError, unpack
from retrieval.bank import AGENT_KEY, USER_SUB
from retrieval.database import entered
from retrieval.hot import HotConnection, HotStatement
from retrieval.schema import policies
from retrieval.stages import log

REFUSED = Counter("casebank_policies_refused_total", "Policies that could not be loaded, by why", ["why"])


class Policies:
    """The heads in memory, at most ``capacity``, the latest used. One that cannot be loaded is left to the default."""

    def __init__(self, capacity: int = 2_000) -> None:
        self._capacity = capacity
        self._known: OrderedDict[tuple[str, str, int], Policy | None] = OrderedDict()

    async def arms(self, connection: HotConnection, agent_key: str, settings: Any) -> dict[str, Policy | None]:
        """Returns each live arm's policy: the default's is None.

        Args:
            connection: of the user whose policies they are.
            agent_key: the other half of the profile's name.
            settings: the row of the profile with the live versions, ``serving`` and ``candidate``; None: no profile.
        """
        if settings is None or not settings.learning:
            return {DEFAULT: None}
        versions = {SERVING: settings.serving, CANDIDATE: settings.candidate}
        wanted = {arm: (connection.user_sub, agent_key, number) for arm, number in versions.items() if number}
        missing = [key[2] for key in wanted.values() if key not in self._known]
        if missing:
            await self._load(connection, agent_key, missing)
        found = {arm: self._known.get(key) for arm, key in wanted.items()}
        return {DEFAULT: None, **{arm: policy for arm, policy in found.items() if policy is not None}}

    async def _load(self, connection: HotConnection, agent_key: str, versions: Sequence[int]) -> None:
        rows = await connection.all(_WEIGHTS, {"agent_key": agent_key, "versions": list(versions)})
        for row in rows:
            try:
                head = unpack(row.weights, row.checksum, features.VERSION)
                policy = Policy(f"q-{row.version}", head, row.blend)
            except WeightsError as error:
                policy = None
                REFUSED.labels(type(error).__name__).inc()
                log.warning("policy.refused", why=type(error).__name__, version=row.version)
            self._known[connection.user_sub, agent_key, row.version] = policy
        while len(self._known) > self._capacity:
            self._known.popitem(last=False)


_WEIGHTS = HotStatement.of(
    select(policies.c.version, policies.c.weights, policies.c.checksum, policies.c.blend)
    .where(
        select(entered().c.entered).scalar_subquery(),
        policies.c.user_sub == USER_SUB,
        policies.c.agent_key == AGENT_KEY,
        policies.c.version == cast(bindparam("versions", type_=ARRAY(Integer)), ARRAY(Integer)).any_(),
    )
    .order_by(policies.c.version)
)
