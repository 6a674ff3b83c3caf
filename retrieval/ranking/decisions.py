"""The log of decisions: the one statement that writes a decision with its slots."""

from dataclasses import dataclass, fields
from functools import cache
from uuid import UUID

from sqlalchemy import ARRAY, REAL, SmallInteger, Uuid, bindparam, cast, column, func, select, true
from sqlalchemy.dialects.postgresql import insert

from retrieval.database.fast_path import FastStatement
from retrieval.database.parameters import entered
from retrieval.schema import decision_slots, decisions


@dataclass(frozen=True, slots=True)
class LoggedDecision:
    """A decision as it is logged: but for SLOTS, its fields are the columns of ``decisions`` that a retrieval fills.

    Attributes:
        query: as it came, redacted.
        rewritten: what was searched for in its place.
        case_ids: of the slate, by place.
        propensities: of the slate, by place.
    """

    id: UUID
    agent_key: str
    query: str
    rewritten: str | None
    mode: str
    degraded: list[str]
    policy_version: str
    feature_version: int
    seed: int
    arm: str
    k: int
    min_similarity: float | None
    slate_propensity: float
    candidate_ids: list[UUID]
    candidate_groups: list[int]
    candidate_sources: list[int]
    features: bytes
    scores: list[float]
    query_model: str | None
    query_vector: list[float] | None
    procedure_ids: list[UUID]
    procedure_versions: list[int]
    tokens: int
    case_ids: list[UUID]
    propensities: list[float]

    def parameters(self) -> dict[str, object]:
        """Returns the parameters of ``log_decision``."""
        return {name: getattr(self, name) for name in _FIELDS}


SLOTS = ("case_ids", "propensities")
"""What is written to ``decision_slots``, a row for each place."""
_FIELDS = tuple(field.name for field in fields(LoggedDecision))
COLUMNS = ("user_sub", *(name for name in _FIELDS if name not in SLOTS))


@cache
def log_decision() -> FastStatement[None]:
    """Returns the statement that writes a LoggedDecision; besides its fields it takes user_sub and authorised_at."""
    enter = entered(relaxed=True)
    values = select(*(bindparam(name, type_=decisions.c[name].type) for name in COLUMNS)).where(enter.c.entered)
    decision = (
        insert(decisions).from_select(COLUMNS, values).returning(decisions.c.user_sub, decisions.c.id).cte("decision")
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
