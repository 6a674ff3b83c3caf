"""Families of database tasks: each has one way to fail, and a goal that the database itself can confirm.

A family is text with holes, which `tasks` fills. Several families share an SQLSTATE, a wording,
or a repair, on purpose: neither the error code nor the words alone say what will help.
"""

from app.demo.operator.families_of_constraints import CONSTRAINTS
from app.demo.operator.family import A1_IS, HAS_COLUMN, HAS_ROW, Family

_UPDATE_WORDINGS = (
    "Set the {c} of {one} A1 to {word}",
    "Change {c} to {word} for the {one} with code A1",
    "{one} A1 has a new {c}: {word}. Record it.",
)

FAMILIES = (
    Family(
        "missing_type",
        "42601",
        "ALTER TABLE {t} ADD COLUMN {new};",
        HAS_COLUMN + "column_name = '{new}')",
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
        HAS_COLUMN + "column_name = '{reserved}')",
        ("quote_identifiers",),
        (
            "Add an integer column named {reserved} to the {t} table",
            "The {t} table needs an integer {reserved} column",
            "Extend {t} with a whole number called {reserved}",
        ),
    ),
    *CONSTRAINTS,
    Family(
        "type_change",
        "42804",
        "ALTER TABLE {t} ALTER COLUMN {new} TYPE {number};",
        HAS_COLUMN + "column_name = '{new}' AND data_type = '{number}')",
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
        HAS_COLUMN + "column_name = '{c}' AND data_type = 'character varying')"
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
        HAS_ROW + "{n} = {small})",
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
        A1_IS,
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
