"""Part of the search statement that reads the profile's settings, and the versions of its live policies."""

from datetime import datetime
from inspect import get_annotations
from typing import Any, Protocol

from sqlalchemy import (
    CTE,
    ColumnElement,
    DefaultClause,
    Float,
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
from retrieval.search.scope import Scope
from retrieval.tables.kinds import Rewrite
from retrieval.tables.memories import facts
from retrieval.tables.procedures import procedures
from retrieval.tables.profiles import policies, profiles, replays

OVERRIDES = ("full_text_weight", "semantic_weight", "rrf_k")
"""Names of the profile's settings that a request may override."""
_ZERO: ColumnElement[int] = literal_column("0")


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


def profile_settings(scope: Scope) -> CTE:
    """Returns a CTE of the searched profile's settings; parameters of the request that are not NULL override them.

    It has no row if there is no such profile. A search of all agents has the settings of a new profile without learning
    and exploration, and no row if the user has no agent; the embedding model is NULL if the agents use several models.
    """
    one = scope is Scope.ONE_AGENT
    if one:
        replayed = replays.c.user_sub == USER_SUB, replays.c.agent_key == AGENT_KEY
        learned = procedures.c.user_sub == USER_SUB, procedures.c.agent_key == AGENT_KEY
        columns: dict[str, Expression] = {
            **{name: profiles.c[name] for name in SETTINGS},
            "serving": _live("serving", policies.c.version),
            "serving_since": _live("serving", policies.c.created_at),
            "candidate": _live("candidate", policies.c.version),
            "candidate_since": _live("candidate", policies.c.created_at),
            "replayed_at": select(replays.c.created_at).where(*replayed).scalar_subquery(),
            "unlike": select(replays.c.unlike).where(*replayed).scalar_subquery(),
            "has_procedures": exists().where(*learned, procedures.c.status == literal_column("'active'")),
            "has_facts": exists().where(facts.c.user_sub == USER_SUB, facts.c.agent_key == AGENT_KEY),
        }
    else:
        on = profiles.c.enabled
        first, last = (function(profiles.c.embedding_model).filter(on) for function in (func.min, func.max))
        columns = {
            **{name: cast(literal_column(_default(name) or "NULL"), profiles.c[name].type) for name in SETTINGS},
            **dict.fromkeys(STATE, null()),
            "enabled": func.bool_or(on),
            "embedding_model": case((first == last, first)),
            "learning": false(),
            "explore": cast(_ZERO, Float),
            "canary": cast(_ZERO, Float),
            "has_procedures": false(),
            "has_facts": false(),
        }
    for name in OVERRIDES:
        columns[name] = func.coalesce(cast(bindparam(name), Float), cast(columns[name], Float))
    settings = select(*(value.label(name) for name, value in columns.items())).where(profiles.c.user_sub == USER_SUB)
    settings = settings.where(profiles.c.agent_key == AGENT_KEY) if one else settings.having(func.count() > _ZERO)
    return settings.cte("profile").prefix_with("MATERIALIZED")


def _live(status: str, column: ColumnElement[Any]) -> Expression:
    """Returns a subquery for a column of the profile's policy that has this status."""
    mine = policies.c.user_sub == USER_SUB, policies.c.agent_key == AGENT_KEY
    return select(column).where(*mine, policies.c.status == literal_column(f"'{status}'")).scalar_subquery()


def _default(name: str) -> str | None:
    """Returns the SQL of a new profile's setting of this name; None: it has none."""
    default = profiles.c[name].server_default
    return str(default.arg) if isinstance(default, DefaultClause) else None


def default_share(name: str) -> float:
    """Returns a new profile's setting of this name, the share of a context that one part gets."""
    return float(_default(name) or 0)
