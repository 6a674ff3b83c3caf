"""Finds the stored procedure that a new draft repeats: one with a similar trigger and nearly the same steps.

If the steps are equal, a less similar trigger suffices.
"""

import re
from collections.abc import Sequence
from functools import cache

import numpy as np
from pgvector.sqlalchemy import Vector
from sqlalchemy import Float, Text, bindparam, case, cast, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.rows import AnyRow, Rows
from retrieval.ports import Vector as UnitVector
from retrieval.tables.procedures import procedures
from writer.procedures.ports import ProcedureDraft, Source
from writer.procedures.rules.revise import MARK
from writer.procedures.rules.steps import EACH_VALUE, without_examples
from writer.vectors import as_text, stored_later

SAME_TRIGGER = 0.85
"""Least cosine similarity of two procedures' triggers at which the procedures may be the same."""
LIKE_TRIGGER = 0.5
"""Least cosine similarity of the triggers at which procedures with equal steps are the same."""
SAME_STEPS = 0.8
"""Least share of common words (Jaccard) of two procedures' steps at which the procedures may be the same."""
NEAREST = 64
"""Number of stored versions, the nearest by trigger, that a draft is compared with: one task may have many ways."""

_ACTIVE_FIRST = (procedures.c.status == "active").desc()
_HOW_MANY = re.compile(rf"{EACH_VALUE}: \d+ here")
_WORD = re.compile(r"[^\s,.;=`]+")
_DECISIVE = re.compile(
    r"""\b(?:call|repeat|when) [^\s,]+\w|\banswers with [^,.]+|"[^"]*"|(?<![^\s`])--?\w[\w-]*|n't\b"""
    r"""|\b(?:not|never|no|without|add|create|delete|drop|grant|insert|remove|rename|revoke|select|truncate|update)\b"""
)
"""Parts of a step in small letters that equal steps share: tools, errors, values, flags, negations, verbs of SQL."""

_Shape = tuple[int, list[str], frozenset[str]]
"""Number of steps, their decisive parts in order, and their words."""


async def find_duplicate(
    connection: AsyncConnection, source: Source, draft: ProcedureDraft, vector: UnitVector | None
) -> AnyRow | None:
    """Returns the stored version that a draft repeats, preferring active versions, then near triggers; None: it is new.

    Without a vector, a trigger is like the draft's only if the texts are equal.
    """
    if vector is not None and source.pgvector:
        parameters = {
            "user_sub": source.user_sub,
            "agent_key": source.agent_key,
            "model": source.model,
            "trigger": draft.trigger.lower(),
            "vector": as_text(vector),
        }
        near = await connection.execute(nearest_versions(draft, vector), parameters)
        candidates = [(row, row.similarity) for row in near]
    else:
        every = await connection.execute(known_versions(source.user_sub, source.agent_key, draft))
        candidates = _nearest(draft, source.model, vector, every.all())
    own = _shape(draft.record.learned_procedure_steps)
    for known, similarity in sorted(candidates, key=lambda each: each[0].status != "active"):
        steps = _shape(known.steps)
        if alike(own, steps) if similarity >= SAME_TRIGGER else own == steps:
            return known
    return None


def known_versions(user_sub: str, agent_key: str, draft: ProcedureDraft) -> Rows:
    """Returns the statement that selects all versions that a draft may repeat, active before retired versions."""
    mine = _comparable(_class(draft)).where(procedures.c.user_sub == user_sub, procedures.c.agent_key == agent_key)
    return mine.order_by(_ACTIVE_FIRST, procedures.c.id, procedures.c.version)


def nearest_versions(draft: ProcedureDraft, vector: UnitVector) -> Rows:
    """Returns the statement that selects the NEAREST versions with a trigger like the draft's; it needs pgvector.

    Its parameters are ``user_sub``, ``agent_key``, ``trigger`` in small letters, ``model``, and ``vector`` as a text.
    """
    return _nearest_versions(len(vector), _class(draft))


@cache  # to build the statement takes as long as to run it
def _nearest_versions(dimension: int, like: tuple[bool, bool]) -> Rows:
    own = cast(stored_later("vector"), Vector(dimension))
    distance = cast(procedures.c.embedding, Vector()).op("<=>", return_type=Float())(own)
    as_long = func.cardinality(procedures.c.embedding) == dimension
    # computed only for vectors of the same model and length; others cannot be compared
    measured = case((procedures.c.embedding_model == bindparam("model"), case((as_long, 1 - distance))))
    same = func.lower(procedures.c.trigger) == bindparam("trigger", type_=Text)
    similarity = case((same, 1.0), else_=measured)
    near = (
        _comparable(like)
        .add_columns(similarity.label("similarity"))
        .where(
            procedures.c.user_sub == bindparam("user_sub"),
            procedures.c.agent_key == bindparam("agent_key"),
            similarity >= LIKE_TRIGGER,
        )
    )
    nearest_first = similarity.desc()
    return near.order_by(nearest_first, _ACTIVE_FIRST, procedures.c.id, procedures.c.version).limit(NEAREST)


def _class(draft: ProcedureDraft) -> tuple[bool, bool]:
    """Returns whether a draft has no level of abstraction, and whether it is a failure lesson."""
    return draft.level is None, draft.kind == "failure_lesson"


def _comparable(like: tuple[bool, bool]) -> Rows:
    is_plain, is_lesson = like
    names = ("id", "version", "status", "trigger", "embedding_model", "embedding")
    steps = procedures.c.record["learned_procedure_steps"].label("steps")
    return select(*(procedures.c[name] for name in names), steps).where(
        procedures.c.status.in_(["active", "retired"]),
        procedures.c.level.is_(None) == is_plain,
        (procedures.c.kind == "failure_lesson") == is_lesson,
    )


def _nearest(
    draft: ProcedureDraft, model: str, vector: UnitVector | None, known: Sequence[AnyRow]
) -> list[tuple[AnyRow, float]]:
    """Returns the rows of `nearest_versions` with their similarity, computed in the process, for want of pgvector."""

    def similarity(row: AnyRow) -> float:
        if row.trigger.lower() == draft.trigger.lower():
            return 1.0
        if vector is None or row.embedding_model != model or len(row.embedding or ()) != len(vector):
            return -1.0
        return float(np.dot(np.asarray(row.embedding, dtype=np.float32), vector))

    near = [(row, alike) for row in known if (alike := similarity(row)) >= LIKE_TRIGGER]
    return sorted(near, key=lambda each: -each[1])[:NEAREST]


def _shape(steps: Sequence[str]) -> _Shape:
    """Returns the shape of steps without examples and notes; repeated steps in a row count once."""
    plain = [without_examples(step.partition(MARK)[0]) for step in steps if not step.startswith(MARK.strip())]
    uncounted = [_HOW_MANY.sub(EACH_VALUE, step) for step in plain]
    rows = [
        step
        for place, step in enumerate(uncounted)
        if "Once for each" not in step or step not in uncounted[place - 1 : place]
    ]
    decisive = [part for step in rows for part in _DECISIVE.findall(step.casefold())]
    return len(rows), decisive, frozenset(word.casefold() for step in plain for word in _WORD.findall(step))


def alike(one: _Shape, other: _Shape) -> bool:
    """Returns whether two lists of steps are equally long, equal in what decides and nearly the same in words."""
    *rest, words = one
    *other_rest, other_words = other
    return rest == other_rest and len(words & other_words) >= SAME_STEPS * len(words | other_words)
