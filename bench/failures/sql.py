"""The world of SQL: an SQLite database in memory for each attempt; every error is SQLite's own."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing

from bench.failures.kinds import Kind, Names, Result, Task
from bench.failures.sql_changes import CHANGES
from bench.failures.sql_kinds import READS, THINGS, VALUES


class SqlWorld:
    """Reports and changes in databases whose tables and columns are not what one would think."""

    name = "sql"
    tool = "sql"
    argument = "query"
    kinds: Sequence[Kind] = (*READS, *CHANGES)
    names: Sequence[Names] = THINGS
    values: Mapping[str, Sequence[str]] = VALUES

    def attempt(self, task: Task, act: str) -> Result:
        """Runs the statements in a database of their own, which is then gone, and compares the answer."""
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
            database.executescript(f"PRAGMA foreign_keys = ON; {task.setup}")
            rows: list[tuple[object, ...]] = []
            try:
                for statement in act.split("; "):
                    rows = database.execute(statement).fetchall()
                if task.goal:
                    rows = database.execute(task.goal).fetchall()
            except sqlite3.Error as error:
                return Result(done=False, output=f"{type(error).__name__}: {error}")
        answer = repr(rows)
        if answer != task.answer:
            return Result(done=False, output=f"AssertionError: the answer {answer} is not right")
        return Result(done=True, output=answer)
