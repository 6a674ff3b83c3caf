"""Reads the lessons of cases: the active fix, or else failure lesson, that each case taught or repeated."""

from collections.abc import Mapping, Sequence
from typing import Protocol
from uuid import UUID

import orjson
from sqlalchemy import Boolean, Text, Uuid, any_, bindparam, cast, column, literal_column, not_, or_, select
from sqlalchemy.dialects.postgresql import distinct_on

from retrieval.database.fast_path import FastConnection, FastStatement
from retrieval.database.parameters import USER_SUB, given_rows, may_enter
from retrieval.procedures.quarantine import proven_runs
from retrieval.tables.kinds import ProcedureKind
from retrieval.tables.procedures import procedures

NO_FAILURE: Mapping[str, object] = {"status": "no_failure_detected"}


class CaseLesson(Protocol):
    """The active version of the fix, or else failure lesson, that a case taught or repeated."""

    case_id: UUID
    id: UUID
    version: int
    kind: ProcedureKind
    record: str
    """Record of the procedure, as JSON text."""


def wrapped(kind: ProcedureKind, record: object) -> dict[str, object]:
    """Returns a lesson's record with its status: a learned procedure, or a failure that was never put right."""
    return {"status": "failure_lesson" if kind == "failure_lesson" else "procedure_learned", "data": record}


def lesson_of(lesson: CaseLesson | None, error_count: int) -> dict[str, object]:
    """Returns the lesson of a ready case with its status.

    Without a lesson, the status says that no call failed; it is None if calls failed without a known cause.
    """
    if lesson is not None:
        return wrapped(lesson.kind, orjson.loads(lesson.record))
    return {**(NO_FAILURE if not error_count else {"status": None}), "data": None}


async def lessons(
    connection: FastConnection, case_ids: Sequence[UUID], *, quarantine: bool = False
) -> dict[UUID, CaseLesson]:
    """Returns the active lessons of these cases, by case id; scripts are no lessons.

    With ``quarantine``, only lessons that a proven run taught or a person pinned are returned.
    """
    parameters = {"case_ids": list(case_ids), "quarantine": quarantine}
    rows = await connection.all(_LESSONS, parameters) if case_ids else []
    return {row.case_id: row for row in rows}


_CASES = given_rows({"case_ids": column("id", Uuid)}, "given")
_CASE_ID = _CASES.c.id
_OWN = procedures.c.case_id.is_not_distinct_from(_CASE_ID)
_LESSONS: FastStatement[CaseLesson] = FastStatement(
    select(
        _CASE_ID.label("case_id"),
        procedures.c.id,
        procedures.c.version,
        procedures.c.kind,
        cast(procedures.c.record, Text).label("record"),
    )
    .join_from(_CASES, procedures, or_(_OWN, any_(procedures.c.source_case_ids) == _CASE_ID))
    .ext(distinct_on(_CASE_ID))
    .where(
        may_enter(),
        procedures.c.user_sub == USER_SUB,
        procedures.c.status == literal_column("'active'"),
        procedures.c.level.is_(None),
        or_(not_(bindparam("quarantine", type_=Boolean)), procedures.c.pinned, proven_runs().scalar_subquery() > 0),
    )
    .order_by(_CASE_ID, _OWN.desc(), procedures.c.kind.desc(), procedures.c.id)
)
