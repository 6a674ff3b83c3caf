"""Families of tasks with two possible solutions; a house accepts one, and only its final check shows which.

The text, the statement and the error of a task are the same in both cases, and both solutions run without an error.
A house can change its convention; the earlier solution then fails the check. One more family has no solution.
"""

import random
from dataclasses import dataclass

from app.demo.operator.family import Family


@dataclass(frozen=True, slots=True)
class Way:
    """One solution of a task, and the check of a house that requires it."""

    solution: tuple[str, ...]
    goal: str


@dataclass(frozen=True, slots=True)
class Convention:
    """A kind of task with two solutions; each house requires one of them."""

    key: str
    sqlstate: str
    naive: str
    wordings: tuple[str, ...]
    ways: tuple[Way, Way]
    extra: str = ""

    def family(self, way: Way) -> Family:
        """Returns the family of these tasks in a house that requires this solution."""
        return Family(self.key, self.sqlstate, self.naive, way.goal, way.solution, self.wordings, self.extra)


_IMPORTED = "EXISTS (SELECT 1 FROM {t} WHERE code = '{code}') AND (SELECT {c} FROM {t} WHERE code = 'A1')"
_REQUIRED = (
    "EXISTS (SELECT 1 FROM information_schema.columns WHERE table_schema = 'work' AND table_name = '{t}'"
    " AND column_name = '{c}' AND is_nullable = 'NO')"
)
_THREE_FILLED = "(SELECT count(*) FROM {t} WHERE {c} IS NOT NULL) = 3"
_TWO_LEFT = "(SELECT count(*) FROM {t}) = 2"

CONVENTIONS = (
    Convention(
        "import_rows",
        "23505",
        "INSERT INTO {t} (code, {c}) VALUES ('A1', '{word}'), ('{code}', '{word}');",
        (
            "Import the {t} A1 and {code}, {c} {word}",
            "Load A1 and {code} with {c} {word} into {t}",
            "New delivery of {t}: A1 and {code}, each with {c} {word}",
        ),
        (
            Way(
                ("ignore_conflict",),
                _IMPORTED + " = 'alpha'",
            ),
            Way(
                ("update_conflict",),
                _IMPORTED + " = '{word}'",
            ),
        ),
    ),
    Convention(
        "leaving_parent",
        "23503",
        "DELETE FROM {p} WHERE id = {small};",
        (
            "{pone} {small} has left us: take it out of {p}",
            "Close the books of {pone} {small} and remove it",
            "{pone} {small} is gone for good; delete it from {p}",
        ),
        (
            Way(("child_rows_first",), "(SELECT count(*) FROM {p}) = 2 AND (SELECT count(*) FROM {t}) = 2"),
            Way(("move_child_rows",), "(SELECT count(*) FROM {p}) = 2 AND (SELECT count(*) FROM {t}) = 3"),
        ),
    ),
    Convention(
        "long_code",
        "22001",
        "INSERT INTO {t} (code, {c}) VALUES ('{code}-{label}-{space}', '{word}');",
        (
            "Add {one} {code}-{label}-{space} with {c} {word}",
            "Enter the {one} {code}-{label}-{space}, {c} {word}",
            "{code}-{label}-{space} is a new {one}; its {c} is {word}",
        ),
        (
            Way(("widen_columns",), "EXISTS (SELECT 1 FROM {t} WHERE code = '{code}-{label}-{space}')"),
            Way(("cut_values",), "EXISTS (SELECT 1 FROM {t} WHERE code = left('{code}-{label}-{space}', 12))"),
        ),
    ),
    Convention(
        "shared_values",
        "23505",
        "CREATE UNIQUE INDEX {t}_{c}_key ON {t} ({c});",
        (
            "From today on no two {t} have the same {c}",
            "Let the database see to it that the {c} of {t} is unique",
            "Every {one} gets a {c} of its own: add the unique index",
        ),
        (
            Way(
                ("delete_duplicates",),
                "to_regclass('work.{t}_{c}_key') IS NOT NULL AND (SELECT count(*) FROM {t}) = 3",
            ),
            Way(
                ("number_duplicates",),
                "to_regclass('work.{t}_{c}_key') IS NOT NULL AND (SELECT count(*) FROM {t}) = 5",
            ),
        ),
        extra="INSERT INTO {t} (code, {c}) VALUES ('D4', 'alpha'), ('E5', 'beta');",
    ),
    Convention(
        "empty_values",
        "23502",
        "ALTER TABLE {t} ALTER COLUMN {c} SET NOT NULL;",
        (
            "No {one} without a {c} any more: see to it in {t}",
            "The {c} of {t} becomes compulsory",
            "Require a {c} for each of the {t}",
        ),
        (
            Way(("backfill_nulls",), _REQUIRED + " AND " + _THREE_FILLED),
            Way(("delete_empty_rows",), _REQUIRED + " AND " + _TWO_LEFT),
        ),
        extra="UPDATE {t} SET {c} = NULL WHERE code = 'B2';",
    ),
)

CLOSED_BOOKS = Family(
    "closed_books",
    "P0001",
    "UPDATE {t} SET {c} = '{word}' WHERE code = 'A1';",
    "false",
    (),
    (
        "Correct the {c} of {one} A1 in last year's {t} to {word}",
        "Last year's {one} A1 should have {c} {word}",
        "In the {t} of last year, set the {c} of A1 to {word}",
    ),
    extra="CREATE FUNCTION closed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION"
    " 'the books of last year are closed'; END $$;"
    "CREATE TRIGGER closed BEFORE INSERT OR UPDATE OR DELETE ON {t} EXECUTE FUNCTION closed();",
)
"""A family without a solution; an operator that knows this from memory stops at the first error."""


def houses_ways(seed: int, *, changed: bool) -> list[Family]:
    """Returns the families with the solutions that the house of this seed requires, before or after its change."""
    rng = random.Random(f"{seed}:conventions")
    firsts = [rng.randrange(2) for _ in CONVENTIONS]
    return [each.family(each.ways[first ^ changed]) for each, first in zip(CONVENTIONS, firsts, strict=True)]
