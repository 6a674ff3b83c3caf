"""Families of tasks that a constraint of a table stops: their SQLSTATE is of class 23."""

from app.demo.operator.family import A1_IS, HAS_COLUMN, HAS_ROW, Family

_THREE_ROWS = "(SELECT count(*) FROM {t}) = 3"
_A1_AS_BEFORE = "(SELECT {c} FROM {t} WHERE code = 'A1') = 'alpha'"
_INSERT_WORDINGS = (
    "Add a new {one} with code {code} and {c} {word}",
    "Create {one} {code} with {word} as its {c}",
)

CONSTRAINTS = (
    Family(
        "parent_missing",
        "23503",
        "INSERT INTO {t} (code, {pone}_id, {c}) VALUES ('{code}', {big}, '{word}');",
        HAS_ROW + "{pone}_id = {big})",
        ("parent_rows_first",),
        (
            "Add a {one} {code} that belongs to {pone} {big}",
            "Record {one} {code} under the new {pone} {big}",
            "{pone} {big} has its first {one}, {code}: enter it",
        ),
    ),
    Family(
        "children_left",
        "23503",
        "DELETE FROM {p} WHERE id = {small};",
        "NOT EXISTS (SELECT 1 FROM {p} WHERE id = {small}) AND (SELECT count(*) FROM {p}) = 2"
        " AND (SELECT count(*) FROM {t}) = 2",
        ("child_rows_first",),
        (
            "Delete {pone} {small}",
            "Remove {pone} number {small} and everything that refers to it",
            "We no longer work with {pone} {small}; take it out of {p}",
        ),
    ),
    Family(
        "value_missing",
        "23502",
        "INSERT INTO {t} (code, {c}) VALUES ('{code}', '{word}');",
        HAS_ROW + "{c} = '{word}')",
        ("fill_required",),
        (*_INSERT_WORDINGS, "Enter the {one} {code} ({c} {word}); other fields are not known yet"),
        extra="ALTER TABLE {t} ADD COLUMN {new} text NOT NULL DEFAULT 'x';"
        "ALTER TABLE {t} ALTER COLUMN {new} DROP DEFAULT;",
    ),
    Family(
        "new_column_required",
        "23502",
        "ALTER TABLE {t} ADD COLUMN {new} text NOT NULL;",
        HAS_COLUMN + "column_name = '{new}' AND is_nullable = 'NO')",
        ("default_new_column",),
        (
            "Add a required {new} column to the {t} table",
            "The {t} table needs a {new} column that is never empty",
            "Extend {t} with a mandatory text column {new}",
        ),
    ),
    Family(
        "nulls_left",
        "23502",
        "ALTER TABLE {t} ALTER COLUMN {c} SET NOT NULL;",
        HAS_COLUMN + "column_name = '{c}' AND is_nullable = 'NO') AND " + _THREE_ROWS,
        ("backfill_nulls",),
        (
            "Make {c} mandatory in {t}",
            "From now on every {one} must have a {c}",
            "Forbid empty {c} values in the {t} table",
        ),
        extra="UPDATE {t} SET {c} = NULL WHERE code = 'B2';",
    ),
    Family(
        "some_rows_exist",
        "23505",
        "INSERT INTO {t} (code, {c}) VALUES ('A1', '{word}'), ('{code}', '{word}');",
        HAS_ROW + "{c} = '{word}') AND " + _A1_AS_BEFORE,
        ("ignore_conflict",),
        (
            "Import the {t} A1 and {code}, keeping the ones we already have",
            "Load {one} codes A1 and {code} without touching existing rows",
            "Add whichever of the {t} A1 and {code} are still missing",
        ),
    ),
    Family(
        "row_exists",
        "23505",
        "INSERT INTO {t} (code, {c}) VALUES ('A1', '{word}');",
        A1_IS,
        ("update_conflict",),
        (
            "Save {one} A1 with {c} {word}, whether or not it is already there",
            "Import {one} A1, overwriting its {c} with {word}",
            "Store the latest {c} of {one} A1: {word}",
        ),
    ),
    Family(
        "sequence_behind",
        "23505",
        "INSERT INTO {t} (code, {c}) VALUES ('{code}', '{word}');",
        HAS_ROW + "{c} = '{word}')",
        ("advance_sequence",),
        (*_INSERT_WORDINGS, "After the restore, add the {one} {code} with {c} {word}"),
        extra="INSERT INTO {t} (id, code) SELECT i, 'R' || i FROM generate_series(4, 60) AS i;"
        "SELECT setval('{t}_id_seq', 1, false);",
    ),
    Family(
        "duplicates_left",
        "23505",
        "CREATE UNIQUE INDEX {t}_{c}_key ON {t} ({c});",
        "to_regclass('work.{t}_{c}_key') IS NOT NULL AND (SELECT count(*) FROM {t}) = 3",
        ("delete_duplicates",),
        (
            "Make {c} unique across {t}",
            "No two {t} may share the same {c}; enforce it with an index",
            "Create a unique index on the {c} of {t}",
        ),
        extra="INSERT INTO {t} (code, {c}) VALUES ('D4', 'alpha'), ('E5', 'beta');",
    ),
)
