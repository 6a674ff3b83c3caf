"""Statements that read procedures for their pages: lists, versions with reviews, samples; compares two versions."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any
from uuid import UUID

from sqlalchemy import and_, func, literal, or_, select
from sqlalchemy.dialects.postgresql import distinct_on

from retrieval.database.rows import Rows
from retrieval.pages.listing import paged
from retrieval.tables.columns import columns_of
from retrieval.tables.procedures import procedure_reviews, procedures

_VERSION = """
id version agent_key kind origin level status pinned parent_version task_type trigger domain query_kind success_score
duration_ms record case_id source_case_ids occurrences uses use_reward last_used_at created_at
"""
"""Columns of a procedure's version that are shown; its vectors are not among them."""
REVIEW = ("verdict", "note", "root_cause_right", "steps_complete", "actor", "created_at")
"""Columns of a version's review; each is shown under its name with ``review_`` in front."""


@dataclass(frozen=True, slots=True)
class Measures:
    """Conditions on the run from which a procedure was learned; a condition of None allows all runs.

    Attributes:
        query_kind: kind that the run's task must have.
        min_success_score: least success score of the run, 0 to 1.
    """

    query_kind: str | None = None
    min_success_score: float | None = None
    max_duration_ms: float | None = None


def _versions() -> Rows:
    """Returns the statement for the versions of procedures as they are shown, each with its review, if it has one."""
    reviewed = and_(
        procedure_reviews.c.user_sub == procedures.c.user_sub,
        procedure_reviews.c.procedure_id == procedures.c.id,
        procedure_reviews.c.version == procedures.c.version,
    )
    named = [procedure_reviews.c[name].label(f"review_{name}") for name in REVIEW]
    return select(*columns_of(procedures, _VERSION), *named).select_from(
        procedures.outerjoin(procedure_reviews, reviewed)
    )


def page_of_procedures(
    user_sub: str, only: Mapping[str, object], measures: Measures, *, before: UUID | None, limit: int
) -> Rows:
    """Returns the statement for the newest procedures: of each its active version, or else its newest version.

    ``only`` has, by column, the values that this version must have; None: any value.
    """
    active = (procedures.c.status == "active").desc()
    every = _versions().ext(distinct_on(procedures.c.id)).where(procedures.c.user_sub == user_sub)
    one = every.order_by(procedures.c.id.desc(), active, procedures.c.version.desc()).subquery()
    page = paged(select(one), one, {**only, "query_kind": measures.query_kind}, before, limit)
    if measures.min_success_score is not None:
        page = page.where(one.c.success_score >= measures.min_success_score)
    if measures.max_duration_ms is not None:
        page = page.where(one.c.duration_ms <= measures.max_duration_ms)
    return page


def versions_of(user_sub: str, procedure_id: UUID) -> Rows:
    """Returns the statement for all versions of a procedure, the newest first."""
    return (
        _versions()
        .where(procedures.c.user_sub == user_sub, procedures.c.id == procedure_id)
        .order_by(procedures.c.version.desc())
    )


def sample_of_procedures(user_sub: str, agent_key: str | None, *, seed: int, size: int) -> Rows:
    """Returns the statement for a random sample of the active procedures.

    The same seed draws the same sample as long as the active procedures are the same.
    """
    drawn = func.md5(func.concat(literal(str(seed)), procedures.c.id, procedures.c.version))
    sample = _versions().where(procedures.c.user_sub == user_sub, procedures.c.status == "active")
    if agent_key is not None:
        sample = sample.where(procedures.c.agent_key == agent_key)
    return sample.order_by(drawn, procedures.c.id).limit(size)


def procedure_of(user_sub: str, case_id: UUID) -> Rows:
    """Returns the statement for the fix, or else failure lesson, that a case taught or repeated.

    Its columns are the kind, the record and ``withdrawn``; a withdrawn one is selected if there is no other. Scripts
    (steps learned without a failure) are left out.
    """
    own = procedures.c.case_id.is_not_distinct_from(case_id)
    withdrawn = (procedures.c.status == "rolled_back").label("withdrawn")
    return (
        select(procedures.c.kind, procedures.c.record, withdrawn)
        .where(
            procedures.c.user_sub == user_sub,
            or_(own, procedures.c.source_case_ids.contains([case_id])),
            procedures.c.kind != "revision",
            procedures.c.level.is_(None),
        )
        .order_by(withdrawn, own.desc(), procedures.c.kind.desc(), procedures.c.version.desc(), procedures.c.id)
        .limit(1)
    )


COMPARED = ("kind", "origin", "level", "task_type", "trigger", "domain")
"""Columns of a version that are compared in addition to the fields of its record."""
STEPS = "learned_procedure_steps"


_CHANGES = {"insert": "added", "delete": "removed", "replace": "changed"}


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, list[dict[str, object]]]:
    """Returns the changes from one version of a procedure to another: ``fields`` in their order, ``steps`` by place.

    The value of a field is None in a version without the field. A change of consecutive steps has the place of the
    first one in the earlier version, from 1; for added steps, the place at which they were added.
    """
    old, new = _fields(before), _fields(after)
    names = [name for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name)]
    earlier, later = before["record"][STEPS], after["record"][STEPS]
    codes = SequenceMatcher(None, earlier, later, autojunk=False).get_opcodes()
    steps = [
        {"change": _CHANGES[tag], "place": i + 1, "before": earlier[i:j], "after": later[k:m]}
        for tag, i, j, k, m in codes
        if tag != "equal"
    ]
    return {
        "fields": [{"field": name, "before": old.get(name), "after": new.get(name)} for name in names],
        "steps": steps,
    }


def _fields(version: Mapping[str, Any]) -> dict[str, object]:
    record = {name: value for name, value in version["record"].items() if name != STEPS}
    return {name: version[name] for name in COMPARED} | record
