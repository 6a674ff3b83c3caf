"""Conditions that a later step of a run changed the subject of a finding: the file or folder that it is about."""

from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    all_,
    and_,
    any_,
    false,
    func,
    literal,
    literal_column,
    or_,
    select,
    tuple_,
)
from sqlalchemy.dialects.postgresql import ARRAY

from retrieval.database.parameters import USER_SUB, parameter
from retrieval.tables.runs import findings, runs

_NONE = literal_column("'{}'::bigint[]", ARRAY(BigInteger))


def _touches(found: Any, change: Any) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Returns two conditions: a change of known places touches a finding's subject, and it is unknown whether it does.

    A reading or a search without known places may be about any file; another call without them need not be about files.
    """
    anywhere = func.cardinality(found.c.place_keys) == 0
    by_place = or_(change.c.place_keys.overlap(found.c.place_marks), found.c.place_keys.overlap(change.c.place_marks))
    return or_(and_(anywhere, found.c.kind != "other"), by_place), and_(anywhere, found.c.kind == "other")


def changes_since(best: Any) -> Any:
    """Returns a subquery of two flags for a run's finding: later steps changed its subject, or may have done so."""
    change = findings.alias("change")
    folder = parameter("folder", BigInteger)
    moves = folder == any_(change.c.place_keys)
    later = tuple_(change.c.step, change.c.part) > tuple_(best.c.step, best.c.part)
    touches, may_touch = _touches(best, change)
    known = change.c.place_keys != _NONE
    depends = best.c.kind != "answer"
    by_folder = or_(parameter("in_shell", Boolean), folder == any_(best.c.place_marks))
    return (
        select(
            func.bool_or(and_(later, known, ~moves, touches)).label("changed"),
            func.bool_or(or_(and_(later, or_(~known, may_touch)), and_(moves, by_folder))).label("in_doubt"),
        )
        .where(change.c.user_sub == USER_SUB, change.c.run_id == runs.c.id, change.c.kind == "write", depends)
        .correlate(runs, best)
        .lateral("changes")
    )


def changes_of_all(user_sub: str, run_id: UUID, folder: int) -> Any:
    """Returns a subquery of two flags for each finding of a run: later steps changed its subject, or may have done so.

    ``folder`` is the key of the folder in which the shell runs.
    """
    change = findings.alias("change")
    known = change.c.place_keys != _NONE
    touches, may_touch = _touches(findings, change)
    return (
        select(
            func.coalesce(func.bool_or(and_(known, touches)), false()).label("changed"),
            func.coalesce(func.bool_or(or_(~known, may_touch)), false()).label("in_doubt"),
        )
        .where(
            change.c.user_sub == user_sub,
            change.c.run_id == run_id,
            change.c.kind == "write",
            findings.c.kind != "answer",
            literal(folder, BigInteger) != all_(change.c.place_keys),
            tuple_(change.c.step, change.c.part) > tuple_(findings.c.step, findings.c.part),
        )
        .correlate(findings)
        .lateral("changes")
    )
