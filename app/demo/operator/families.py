"""Families of database tasks: each has one way to fail, and a goal that the database itself can confirm.

A family is text with holes, which `tasks` fills. Several families share an SQLSTATE, a wording,
or a repair, on purpose: neither the error code nor the words alone say what will help.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Family:
    """One kind of task. `solution` is the chain of repairs that reaches the goal; the operator never sees it."""

    key: str
    sqlstate: str
    naive: str
    goal: str
    solution: tuple[str, ...]
    wordings: tuple[str, ...]
    extra: str = ""
    first: tuple[Mapping[str, str], ...] = field(default=(), repr=False)  # names of the first variations


_HAS_COLUMN = "EXISTS (SELECT 1 FROM information_schema.columns WHERE table_schema = 'work' AND table_name = '{t}' AND "
_HAS_ROW = "EXISTS (SELECT 1 FROM {t} WHERE code = '{code}' AND "
_THREE_ROWS = "(SELECT count(*) FROM {t}) = 3"
_A1_AS_BEFORE = "(SELECT {c} FROM {t} WHERE code = 'A1') = 'alpha'"
_A1_IS = "(SELECT {c} FROM {t} WHERE code = 'A1') = '{word}'"
_UPDATE_WORDINGS = (
    "Set the {c} of {one} A1 to {word}",
    "Change {c} to {word} for the {one} with code A1",
    "{one} A1 has a new {c}: {word}. Record it.",
)
_INSERT_WORDINGS = (
    "Add a new {one} with code {code} and {c} {word}",
    "Create {one} {code} with {word} as its {c}",
)

FAMILIES = (
    Family(
        "missing_type",
        "42601",
        "ALTER TABLE {t} ADD COLUMN {new};",
        _HAS_COLUMN + "column_name = '{new}')",
        ("append_type",),
        (
            "Add {a} {new} column to the {t} table",
            "The {t} table needs a column for {new}",
            "Extend {t} with {a} {new} column",
        ),
        first=(
            {"t": "users", "one": "user", "new": "last_name", "a": "a"},
            {"t": "profiles", "one": "profile", "new": "age", "a": "an"},
        ),
    ),
    Family(
        "reserved_column",
        "42601",
        "ALTER TABLE {t} ADD COLUMN {reserved} integer;",
        _HAS_COLUMN + "column_name = '{reserved}')",
        ("quote_identifiers",),
        (
            "Add an integer column named {reserved} to the {t} table",
            "The {t} table needs an integer {reserved} column",
            "Extend {t} with a whole number called {reserved}",
        ),
    ),
    Family(
        "parent_missing",
        "23503",
        "INSERT INTO {t} (code, {pone}_id, {c}) VALUES ('{code}', {big}, '{word}');",
        _HAS_ROW + "{pone}_id = {big})",
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
        _HAS_ROW + "{c} = '{word}')",
        ("fill_required",),
        (*_INSERT_WORDINGS, "Enter the {one} {code} ({c} {word}); other fields are not known yet"),
        extra="ALTER TABLE {t} ADD COLUMN {new} text NOT NULL DEFAULT 'x';"
        "ALTER TABLE {t} ALTER COLUMN {new} DROP DEFAULT;",
    ),
    Family(
        "new_column_required",
        "23502",
        "ALTER TABLE {t} ADD COLUMN {new} text NOT NULL;",
        _HAS_COLUMN + "column_name = '{new}' AND is_nullable = 'NO')",
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
        _HAS_COLUMN + "column_name = '{c}' AND is_nullable = 'NO') AND " + _THREE_ROWS,
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
        _HAS_ROW + "{c} = '{word}') AND " + _A1_AS_BEFORE,
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
        _A1_IS,
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
        _HAS_ROW + "{c} = '{word}')",
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
    Family(
        "type_change",
        "42804",
        "ALTER TABLE {t} ALTER COLUMN {new} TYPE {number};",
        _HAS_COLUMN + "column_name = '{new}' AND data_type = '{number}')",
        ("using_cast", "drop_default"),
        (
            "Change the type of {new} in {t} to {number}",
            "Turn the text column {new} of {t} into {number}",
            "{t} keeps {new} as text; store it as {number} instead",
        ),
        extra="ALTER TABLE {t} ADD COLUMN {new} text DEFAULT '0';",
    ),
    Family(
        "view_in_the_way",
        "0A000",
        "ALTER TABLE {t} ALTER COLUMN {c} TYPE varchar(60);",
        _HAS_COLUMN + "column_name = '{c}' AND data_type = 'character varying')"
        " AND to_regclass('work.{one}_overview') IS NOT NULL",
        ("recreate_views",),
        (
            "Limit {c} in {t} to 60 characters",
            "Change the type of {c} in {t} to varchar(60)",
            "A {c} of a {one} may have at most 60 characters; narrow the column",
        ),
    ),
    Family(
        "enum_label",
        "22P02",
        "UPDATE {t} SET status = '{label}' WHERE code = 'A1';",
        "(SELECT status::text FROM {t} WHERE code = 'A1') = '{label}'",
        ("add_enum_label", "outside_transaction"),
        (
            "Mark {one} A1 as {label}",
            "Set the status of {one} A1 to {label}",
            "{one} A1 has been {label}; update its status",
        ),
    ),
    Family(
        "unit_in_number",
        "22P02",
        "INSERT INTO {t} (code, {n}) VALUES ('{code}', '{small} {unit}');",
        _HAS_ROW + "{n} = {small})",
        ("digits_only",),
        (
            "Add {one} {code} with a {n} of {small} {unit}",
            "Create {one} {code}, {n} {small} {unit}",
            "Register {small} {unit} as the {n} of the new {one} {code}",
        ),
    ),
    Family(
        "mixed_case_table",
        "42P01",
        "UPDATE {t} SET {c} = '{word}' WHERE code = 'A1';",
        "(SELECT {c} FROM \"{T}\" WHERE code = 'A1') = '{word}'",
        ("catalog_case",),
        (*_UPDATE_WORDINGS, "In the imported {T} table, set {c} of A1 to {word}"),
        extra='ALTER TABLE {t} RENAME TO "{T}";',
    ),
    Family(
        "other_schema",
        "42P01",
        "UPDATE {t} SET {c} = '{word}' WHERE code = 'A1';",
        "(SELECT {c} FROM {space}.{t} WHERE code = 'A1') = '{word}'",
        ("qualify_schema",),
        (*_UPDATE_WORDINGS, "Set the {c} of {one} A1 to {word} in the {space} data"),
        extra="CREATE SCHEMA {space}; ALTER TABLE {t} SET SCHEMA {space};",
    ),
    Family(
        "double_quoted_text",
        "42703",
        "UPDATE {t} SET {c} = \"{word}\" WHERE code = 'A1';",
        _A1_IS,
        ("single_quotes",),
        (*_UPDATE_WORDINGS, 'Set {c} to "{word}" for {one} A1'),
    ),
    Family(
        "mixed_case_column",
        "42703",
        "UPDATE {t} SET {N} = {big} WHERE code = 'A1';",
        "(SELECT \"{N}\" FROM {t} WHERE code = 'A1') = {big}",
        ("catalog_case",),
        (
            "Set {N} of {one} A1 to {big}",
            "Change {N} to {big} for the {one} with code A1",
            "The {N} of {one} A1 is now {big}",
        ),
        extra='ALTER TABLE {t} RENAME COLUMN {n} TO "{N}";',
    ),
    Family(
        "schema_missing",
        "3F000",
        "CREATE TABLE {space}.{one}_history (id integer PRIMARY KEY, {c} text);",
        "to_regclass('{space}.{one}_history') IS NOT NULL",
        ("create_schema",),
        (
            "Create a {one}_history table in {space}",
            "Keep the history of {t} in {space}.{one}_history",
            "Set up {space}.{one}_history with an id and a {c}",
        ),
    ),
    Family(
        "group_by_short",
        "42803",
        "CREATE VIEW {one}_totals AS SELECT status, {c}, count(*) AS total FROM {t} GROUP BY status;",
        "to_regclass('work.{one}_totals') IS NOT NULL",
        ("extend_group_by",),
        (
            "Create a view {one}_totals that counts {t} by status and {c}",
            "Make a {one}_totals view: how many {t} per status and {c}",
            "Report the number of {t} for each status and {c} as {one}_totals",
        ),
    ),
    Family(
        "ambiguous_column",
        "42702",
        "CREATE VIEW {one}_list AS SELECT id, {c}, name FROM {t} JOIN {p} ON {p}.id = {t}.{pone}_id;",
        "to_regclass('work.{one}_list') IS NOT NULL",
        ("qualify_columns",),
        (
            "Create a view {one}_list of {t} with the name of their {pone}",
            "Make a {one}_list view that joins {t} with {p}",
            "Show each {one} next to its {pone} in a view called {one}_list",
        ),
    ),
    Family(
        "dependents_left",
        "2BP01",
        "DROP TABLE {t};",
        "to_regclass('work.{t}') IS NULL AND to_regclass('work.{p}') IS NOT NULL",
        ("cascade",),
        (
            "Drop the {t} table",
            "Remove the table {t} and whatever is built on it",
            "We no longer need {t}; get rid of the table",
        ),
    ),
    Family(
        "concurrent_index",
        "25001",
        "CREATE INDEX CONCURRENTLY {t}_{c}_idx ON {t} ({c});",
        "EXISTS (SELECT 1 FROM pg_index WHERE indexrelid = to_regclass('work.{t}_{c}_idx') AND indisvalid)",
        ("outside_transaction",),
        (
            "Index the {c} of {t} without blocking writes",
            "Build an index on {t} ({c}) concurrently",
            "Lookups of {t} by {c} are slow; add an index while the table stays in use",
        ),
    ),
)
FAMILY_BY_KEY = {family.key: family for family in FAMILIES}
