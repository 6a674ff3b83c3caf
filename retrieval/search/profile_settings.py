"""Part of the search statement that reads the profile's settings, and the versions of its live policies."""

from collections.abc import Mapping
from datetime import datetime
from inspect import get_annotations
from typing import Protocol, TypeVar

from sqlalchemy import (
    CTE,
    Column,
    ColumnElement,
    DefaultClause,
    Float,
    ScalarSelect,
    bindparam,
    case,
    cast,
    exists,
    false,
    func,
    literal_column,
    null,
    select,
)

from retrieval.database.parameters import AGENT_KEY, USER_SUB
from retrieval.database.rows import Expression
from retrieval.tables.kinds import Rewrite
from retrieval.tables.memories import facts
from retrieval.tables.procedures import procedures
from retrieval.tables.profiles import policies, profiles, replays

OVERRIDES = ("full_text_weight", "semantic_weight", "rrf_k")
"""Names of the profile's settings that a request may override."""
T = TypeVar("T")


class ProfileSettings(Protocol):
    """The columns about the profile that each row of a search has: its SETTINGS, and its STATE.

    The state is the version and the time of its live policies, the time of its latest replay, the similarity of its
    unlike cases, and whether it has a procedure or a fact to show.
    """

    enabled: bool
    k: int
    embedding_model: str | None
    approximate: bool
    learning: bool
    explore: float
    canary: float
    rewrite: Rewrite
    procedures: int
    procedure_similarity: float | None
    session_share: float
    facts_share: float
    procedures_share: float
    full_text_weight: float
    semantic_weight: float
    rrf_k: float
    serving: int | None
    serving_since: datetime
    candidate: int | None
    candidate_since: datetime
    replayed_at: datetime | None
    unlike: float | None
    has_procedures: bool
    has_facts: bool


SETTINGS = tuple(name for name in get_annotations(ProfileSettings) if name in profiles.c)
STATE = tuple(name for name in get_annotations(ProfileSettings) if name not in profiles.c)


def profile_settings() -> CTE:
    """Returns a CTE of the profile's settings; parameters of the request that are not NULL override them.

    It has no row if there is no such profile.
    """
    overridden = [_overridden(name, profiles.c[name]) for name in OVERRIDES]
    state: Mapping[str, Expression] = {
        "serving": _live("serving", policies.c.version),
        "serving_since": _live("serving", policies.c.created_at),
        "candidate": _live("candidate", policies.c.version),
        "candidate_since": _live("candidate", policies.c.created_at),
        "replayed_at": _replayed(replays.c.created_at),
        "unlike": _replayed(replays.c.unlike),
        "has_procedures": exists().where(
            procedures.c.user_sub == USER_SUB,
            procedures.c.agent_key == AGENT_KEY,
            procedures.c.status == literal_column("'active'"),
        ),
        "has_facts": exists().where(facts.c.user_sub == USER_SUB, facts.c.agent_key == AGENT_KEY),
    }
    columns = [profiles.c[name] for name in SETTINGS if name not in OVERRIDES]
    return (
        select(*columns, *overridden, *(state[name].label(name) for name in STATE))
        .where(profiles.c.user_sub == USER_SUB, profiles.c.agent_key == AGENT_KEY)
        .cte("profile")
        .prefix_with("MATERIALIZED")
    )


def _replayed(column: Column[T]) -> ScalarSelect[T]:
    mine = replays.c.user_sub == USER_SUB, replays.c.agent_key == AGENT_KEY
    return select(column).where(*mine).scalar_subquery()


def default_share(name: str) -> float:
    """Returns a new profile's setting of this name, the share of a context that one part gets."""
    default = profiles.c[name].server_default
    return float(str(default.arg)) if isinstance(default, DefaultClause) else 0.0


def settings_of_none() -> CTE:
    """Returns a CTE of the settings of a search in all of the user's agents; it has no row if there are none.

    The settings are those of a new profile without learning and exploration. The embedding model is NULL if the agents
    use several models.
    """
    on = profiles.c.enabled
    first, last = (function(profiles.c.embedding_model).filter(on) for function in (func.min, func.max))
    own: Mapping[str, Expression] = {
        "enabled": func.bool_or(on),
        "embedding_model": case((first == last, first)),
        "learning": false(),
        "explore": cast(literal_column("0"), Float),
        "canary": cast(literal_column("0"), Float),
        "has_procedures": false(),
        "has_facts": false(),
    }
    columns = [own.get(name, _default(name)).label(name) for name in SETTINGS if name not in OVERRIDES]
    overridden = [_overridden(name, _default(name)) for name in OVERRIDES]
    return (
        select(*columns, *overridden, *(own.get(name, null()).label(name) for name in STATE))
        .where(profiles.c.user_sub == USER_SUB)
        .having(func.count() > literal_column("0"))
        .cte("profile")
        .prefix_with("MATERIALIZED")
    )


def _overridden(name: str, setting: ColumnElement[float]) -> ColumnElement[float]:
    return func.coalesce(cast(bindparam(name), Float), cast(setting, Float)).label(name)


def _default(name: str) -> Expression:
    """Returns the SQL for a new profile's setting of this name."""
    column, default = profiles.c[name], profiles.c[name].server_default
    return cast(literal_column(str(default.arg)) if isinstance(default, DefaultClause) else null(), column.type)


def _live(status: str, column: ColumnElement[T]) -> ScalarSelect[T]:
    """Returns a subquery for a column of the profile's policy that has this status."""
    return (
        select(column)
        .where(
            policies.c.user_sub == USER_SUB,
            policies.c.agent_key == AGENT_KEY,
            policies.c.status == literal_column(f"'{status}'"),
        )
        .scalar_subquery()
    )
