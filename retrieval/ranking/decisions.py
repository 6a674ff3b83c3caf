"""The log of decisions: the one statement that writes a decision with its slots."""

from functools import cache

from sqlalchemy import ARRAY, REAL, SmallInteger, Uuid, bindparam, cast, column, func, select, true
from sqlalchemy.dialects.postgresql import insert

from retrieval.database.fast_path import FastStatement
from retrieval.database.parameters import entered
from retrieval.schema import decision_slots, decisions

_LOGGED = (
    "user_sub",
    "id",
    "agent_key",
    "query",
    "rewritten",
    "mode",
    "degraded",
    "policy_version",
    "feature_version",
    "seed",
    "arm",
    "k",
    "min_similarity",
    "slate_propensity",
    "candidate_ids",
    "candidate_groups",
    "candidate_sources",
    "features",
    "scores",
    "query_model",
    "query_vector",
    "procedure_ids",
    "procedure_versions",
    "tokens",
)


@cache
def log_decision() -> FastStatement:
    """Returns the statement that writes a decision, and the lists ``case_ids`` and ``propensities`` as its slots.

    Besides the _LOGGED columns it takes ``authorised_at``.
    """
    enter = entered(relaxed=True)
    values = select(*(bindparam(name, type_=decisions.c[name].type) for name in _LOGGED)).where(enter.c.entered)
    decision = (
        insert(decisions).from_select(_LOGGED, values).returning(decisions.c.user_sub, decisions.c.id).cte("decision")
    )
    slate = (
        func.unnest(
            cast(bindparam("case_ids", type_=ARRAY(Uuid)), ARRAY(Uuid)),
            cast(bindparam("propensities", type_=ARRAY(REAL)), ARRAY(REAL)),
        )
        .table_valued(
            column("case_id", Uuid),
            column("propensity", REAL),
            with_ordinality="place",
            name="slate",
        )
        .render_derived()
    )
    slots = select(
        decision.c.user_sub,
        decision.c.id,
        cast(slate.c.place, SmallInteger),
        slate.c.case_id,
        slate.c.propensity,
    ).join_from(decision, slate, true())
    names = ["user_sub", "decision_id", "place", "case_id", "propensity"]
    return FastStatement.of(insert(decision_slots).from_select(names, slots))
