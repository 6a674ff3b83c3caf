"""The operator's next statement, with the statements before and after it."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from app.demo.operator.catalog import Catalog

_INSERT = re.compile(
    r"INSERT INTO (?P<table>\S+) \((?P<columns>[^)]*)\) VALUES (?P<rows>.+?)(?P<tail> ON CONFLICT.*)?$"
)


@dataclass(frozen=True)
class RepairScript:
    """One attempt: statements in order, in one transaction unless `autocommit`."""

    main: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    autocommit: bool = False

    @property
    def statements(self) -> tuple[str, ...]:
        """All statements, in order."""
        return (*self.before, self.main, *self.after)

    def rewrite(self, main: str) -> "RepairScript | None":
        """Returns the script with another main statement; None if it is the same."""
        return None if main == self.main else replace(self, main=main)

    def first(self, *statements: str) -> "RepairScript | None":
        """Returns the script with these SQL statements before its main statement; None without any."""
        return replace(self, before=self.before + statements) if statements else None


Edit = Callable[[RepairScript, Catalog], RepairScript | None]


@dataclass(frozen=True)
class Insert:
    """The parts of an INSERT."""

    table: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    tail: str

    def __str__(self) -> str:
        """Returns the INSERT as SQL."""
        rows = ", ".join(f"({', '.join(row)})" for row in self.rows)
        columns = ", ".join(self.columns)
        return f"INSERT INTO {self.table} ({columns}) VALUES {rows}{self.tail}"  # noqa: S608 (the operator's own words)


def naive(statement: str) -> RepairScript:
    """Returns the script of a migration that runs the statement as it is, without precautions against locks."""
    return RepairScript(statement.strip().removesuffix(";"))


def parse_insert(script: RepairScript) -> Insert | None:
    """Returns the parts of the main statement; None unless it is an INSERT … VALUES."""
    match = _INSERT.match(script.main)
    if match is None:
        return None
    rows = tuple(tuple(row.split(", ")) for row in re.findall(r"\(([^)]*)\)", match["rows"]))
    return Insert(match["table"], tuple(match["columns"].split(", ")), rows, match["tail"] or "")


def target(script: RepairScript, catalog: Catalog) -> str | None:
    """Returns the first existing table in the main statement, quoted as in the catalog; None without one."""
    known = {name.lower(): name for name in catalog.tables}
    for word in re.findall(r"\w+", script.main):
        if word.lower() in known:
            return f'"{known[word.lower()]}"'
    return None
