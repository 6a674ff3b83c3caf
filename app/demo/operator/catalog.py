"""The operator's view of the database: one query over the system catalog."""

import json
from dataclasses import dataclass
from typing import TypedDict

WORK_SCHEMA = "work"

INSPECT = """
SELECT json_build_object(
  'columns', (
    SELECT coalesce(json_agg(json_build_array(n.nspname, c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
                                              a.attnotnull, a.atthasdef) ORDER BY n.nspname, c.relname, a.attnum), '[]')
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
      AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')),
  'foreign_keys', (
    SELECT coalesce(json_agg(json_build_array(child.relname, ca.attname, parent.relname, pa.attname)
                             ORDER BY child.relname, ca.attname), '[]')
    FROM pg_constraint k
    JOIN pg_class child ON child.oid = k.conrelid JOIN pg_class parent ON parent.oid = k.confrelid
    JOIN pg_attribute ca ON ca.attrelid = k.conrelid AND ca.attnum = k.conkey[1]
    JOIN pg_attribute pa ON pa.attrelid = k.confrelid AND pa.attnum = k.confkey[1]
    WHERE k.contype = 'f'),
  'uniques', (
    SELECT coalesce(json_agg(json_build_array(c.relname, a.attname) ORDER BY c.relname, a.attname), '[]')
    FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
    WHERE i.indisunique AND i.indnatts = 1 AND n.nspname NOT IN ('pg_catalog', 'pg_toast')),
  'enums', (
    SELECT coalesce(json_object_agg(typname, labels), '{}') FROM (
      SELECT t.typname, json_agg(e.enumlabel ORDER BY e.enumsortorder) AS labels
      FROM pg_enum e JOIN pg_type t ON t.oid = e.enumtypid GROUP BY t.typname) AS enum),
  'views', (
    SELECT coalesce(json_agg(json_build_array(viewname, definition) ORDER BY viewname), '[]')
    FROM pg_views WHERE schemaname = 'work'),
  'sequences', (
    SELECT coalesce(json_agg(json_build_array(s.relname, c.relname, a.attname) ORDER BY s.relname), '[]')
    FROM pg_depend d JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S' JOIN pg_class c ON c.oid = d.refobjid
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.refobjsubid WHERE d.deptype = 'a')
)::text
"""


@dataclass(frozen=True)
class Column:
    """One column of one table, with names as in the catalog."""

    schema: str
    table: str
    name: str
    type: str
    not_null: bool
    has_default: bool

    @property
    def sample(self) -> str:
        """Harmless literal of the column's type."""
        return sample_of(self.type)


@dataclass(frozen=True)
class Catalog:
    """Schema of the demo's database, by which its agent chooses repairs: tables, keys, enums, views and sequences."""

    columns: tuple[Column, ...] = ()
    foreign_keys: tuple[tuple[str, str, str, str], ...] = ()  # child, its column, parent, its column
    uniques: tuple[tuple[str, str], ...] = ()  # table, its column
    enums: tuple[tuple[str, tuple[str, ...]], ...] = ()  # type, its labels
    views: tuple[tuple[str, str], ...] = ()  # name, definition
    sequences: tuple[tuple[str, str, str], ...] = ()  # sequence, the table and column it feeds

    def of(self, table: str) -> tuple[Column, ...]:
        """Returns the columns of a table in order; names are compared without case and quotes."""
        wanted = table.strip('"').lower()
        return tuple(column for column in self.columns if column.table.lower() == wanted)

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of all tables, in order."""
        return tuple(dict.fromkeys(column.table for column in self.columns))


class _Inspected(TypedDict):
    """The result of the `INSPECT` query; rows are lists, since JSON has no tuples."""

    columns: list[tuple[str, str, str, str, bool, bool]]
    foreign_keys: list[tuple[str, str, str, str]]
    uniques: list[tuple[str, str]]
    enums: dict[str, list[str]]
    views: list[tuple[str, str]]
    sequences: list[tuple[str, str, str]]


def read_catalog(text: str) -> Catalog:
    """Parses the result of the `INSPECT` query."""
    found: _Inspected = json.loads(text)
    return Catalog(
        columns=tuple(Column(*row) for row in found["columns"]),
        foreign_keys=tuple((child, column, parent, key) for child, column, parent, key in found["foreign_keys"]),
        uniques=tuple((table, column) for table, column in found["uniques"]),
        enums=tuple((name, tuple(labels)) for name, labels in sorted(found["enums"].items())),
        views=tuple((name, definition) for name, definition in found["views"]),
        sequences=tuple((sequence, table, column) for sequence, table, column in found["sequences"]),
    )


def sample_of(type_name: str) -> str:
    """Returns a harmless literal of an SQL type: 0 for numbers, now() for times, otherwise a word."""
    name = type_name.lower()
    if name.startswith(("int", "big", "small", "num", "real", "double")):
        return "0"
    if name.startswith(("time", "date")):
        return "now()"
    return "false" if name.startswith("bool") else "'unknown'"
