"""Finds the stored procedure that a new draft repeats: a trigger that is like its own, and nearly the same steps."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from pgvector.sqlalchemy import Vector
from sqlalchemy import ARRAY, REAL, ColumnElement, Float, case, cast, func, literal, select
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.rows import Rows
from retrieval.ports import Vector as UnitVector
from retrieval.tables.kinds import ProcedureStatus
from retrieval.tables.procedures import procedures
from writer.procedures.ports import Draft, Source
from writer.procedures.rules.revise import MARK
from writer.procedures.rules.steps import EACH_VALUE, without_examples

SAME_TRIGGER = 0.85
"""Cosine similarity of triggers from which two procedures of like steps are one."""
SAME_STEPS = 0.8
"""Share of common words (Jaccard) from which steps are alike."""
NEAREST = 8
"""How many of the nearest procedures are compared with a new one."""

_ACTIVE_FIRST = (procedures.c.status == "active").desc()
_HOW_MANY = re.compile(rf"{EACH_VALUE}: \d+ here")
_WORD = re.compile(r"[^\s,.;=`]+")


@dataclass(frozen=True, slots=True)
class _Known:
    """A stored version that a new draft is compared with; without a vector where its trigger had no words."""

    id: UUID
    version: int
    status: ProcedureStatus
    trigger: str
    embedding_model: str | None
    embedding: Sequence[float] | None
    steps: Sequence[str]


async def find_duplicate(
    connection: AsyncConnection, source: Source, draft: Draft, vector: UnitVector | None
) -> _Known | None:
    """Returns the procedure that says the same already; an active one before a retired one, the nearest first."""
    if vector is not None and source.pgvector:
        near = nearest_versions(source.user_sub, source.agent_key, draft, source.model, vector)
        candidates = [_Known(*row) for row in await connection.execute(near)]
    else:
        every = await connection.execute(known_versions(source.user_sub, source.agent_key, draft))
        candidates = _nearest(draft, source.model, vector, [_Known(*row) for row in every])
    own = _shape(draft.record.learned_procedure_steps)
    return next((each for each in candidates if alike(own, _shape(each.steps))), None)


def known_versions(user_sub: str, agent_key: str, draft: Draft) -> Rows:
    """Returns the statement for the active and then the retired procedures of the draft's kind."""
    return _comparable(user_sub, agent_key, draft).order_by(_ACTIVE_FIRST, procedures.c.id, procedures.c.version)


def nearest_versions(user_sub: str, agent_key: str, draft: Draft, model: str, vector: UnitVector) -> Rows:
    """Returns the statement for the NEAREST of those whose trigger is like the draft's; needs pgvector."""
    similarity = _similarity(model, vector)
    same = func.lower(procedures.c.trigger) == draft.trigger.lower()
    near = _comparable(user_sub, agent_key, draft).where(same | (similarity >= SAME_TRIGGER))
    nearest_first = similarity.desc().nulls_last()
    return near.order_by(_ACTIVE_FIRST, nearest_first, procedures.c.id, procedures.c.version).limit(NEAREST)


def _comparable(user_sub: str, agent_key: str, draft: Draft) -> Rows:
    names = ("id", "version", "status", "trigger", "embedding_model", "embedding")
    steps = procedures.c.record["learned_procedure_steps"].label("steps")
    return select(*(procedures.c[name] for name in names), steps).where(
        procedures.c.user_sub == user_sub,
        procedures.c.agent_key == agent_key,
        procedures.c.status.in_(["active", "retired"]),
        procedures.c.level.is_(None) == (draft.level is None),
        (procedures.c.kind == "failure_lesson") == (draft.kind == "failure_lesson"),
    )


def _nearest(draft: Draft, model: str, vector: UnitVector | None, known: Sequence[_Known]) -> list[_Known]:
    """Returns what the database would, where it cannot compare vectors."""

    def similarity(row: _Known) -> float:
        if vector is None or row.embedding_model != model or len(row.embedding or ()) != len(vector):
            return -1.0
        return float(np.dot(np.asarray(row.embedding, dtype=np.float32), vector))

    measured = [(row, similarity(row)) for row in known]
    near = [
        (row, found) for row, found in measured if found >= SAME_TRIGGER or row.trigger.lower() == draft.trigger.lower()
    ]
    return [row for row, _ in sorted(near, key=lambda pair: (pair[0].status != "active", -pair[1]))[:NEAREST]]


def _similarity(model: str, vector: UnitVector) -> ColumnElement[float]:
    """Cosine similarity of the triggers, computed for those alone that lie in the vector's space; needs pgvector."""
    given = cast(cast(literal(vector.tolist(), ARRAY(REAL)), ARRAY(REAL)), Vector(len(vector)))
    distance = cast(procedures.c.embedding, Vector()).op("<=>", return_type=Float())(given)
    as_long = func.cardinality(procedures.c.embedding) == len(vector)
    return case((procedures.c.embedding_model == model, case((as_long, 1 - distance))))


def _shape(steps: Sequence[str]) -> tuple[int, frozenset[str]]:
    """Returns the number of steps, and their words without examples and notes."""
    plain = [without_examples(step.partition(MARK)[0]) for step in steps if not step.startswith(MARK.strip())]
    told = [_HOW_MANY.sub(EACH_VALUE, step) for step in plain]
    rows = [
        step for place, step in enumerate(told) if "Once for each" not in step or step not in told[place - 1 : place]
    ]
    return len(rows), frozenset(word.casefold() for step in plain for word in _WORD.findall(step))


def alike(one: tuple[int, frozenset[str]], other: tuple[int, frozenset[str]]) -> bool:
    """Returns whether two shapes of steps are of one length and of nearly the same words."""
    (length, words), (other_length, other_words) = one, other
    return length == other_length and len(words & other_words) >= SAME_STEPS * len(words | other_words)
