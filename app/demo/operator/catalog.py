"""The operator's view of the database: one query over the system catalog."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import NamedTuple

from pydantic import TypeAdapter

WORK_SCHEMA = "work"

INSPECT = files("app.demo.operator").joinpath("catalog.sql").read_text(encoding="utf-8")


class Column(NamedTuple):
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
    enums: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # type, its labels
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


CATALOG = TypeAdapter(Catalog)
"""Parser of the result of the ``INSPECT`` query."""


def sample_of(type_name: str) -> str:
    """Returns a harmless literal of an SQL type: 0 for numbers, now() for times, otherwise a word."""
    name = type_name.lower()
    if name.startswith(("int", "big", "small", "num", "real", "double")):
        return "0"
    if name.startswith(("time", "date")):
        return "now()"
    return "false" if name.startswith("bool") else "'unknown'"
