"""Scope of a search: the cases of one agent, or of all the user's agents whose memory is on.

A search of all agents has the settings of a new profile, uses the untrained order and does not explore. Its decision is
logged under the agent ``ALL_AGENTS``, so that no agent's policy is trained on it; the cases that it showed earn
their credit all the same.
"""

from enum import Enum, auto
from typing import Self

from sqlalchemy import ColumnElement, literal_column, select

from retrieval.database.parameters import AGENT_KEY, USER_SUB
from retrieval.tables.cases import cases
from retrieval.tables.columns import ALL_AGENTS
from retrieval.tables.profiles import profiles


class Scope(Enum):
    """Scope of a search for cases: one agent, or all of the user's agents."""

    ONE_AGENT = auto()
    ALL_AGENTS = auto()

    @classmethod
    def of(cls, agent_key: str) -> Self:
        """Returns the scope of a search whose agent is this one; ``ALL_AGENTS`` stands for all of the user's agents."""
        return cls(cls.ALL_AGENTS if agent_key == ALL_AGENTS else cls.ONE_AGENT)


def in_scope(scope: Scope, agent_key: ColumnElement[str], *profile: ColumnElement[bool]) -> ColumnElement[bool]:
    """Returns the condition that a row belongs to the searched agents.

    ``profile`` are further conditions on the agents' profiles, in a search of all agents.
    """
    if scope is Scope.ONE_AGENT:
        return agent_key == AGENT_KEY
    return agent_key.in_(
        select(profiles.c.agent_key).where(profiles.c.user_sub == USER_SUB, profiles.c.enabled, *profile)
    )


def ready(scope: Scope = Scope.ONE_AGENT) -> tuple[ColumnElement[bool], ...]:
    """Returns the conditions that select the cases that a search can find."""
    return (
        cases.c.user_sub == USER_SUB,
        in_scope(scope, cases.c.agent_key),
        cases.c.status == literal_column("'ready'"),
    )
