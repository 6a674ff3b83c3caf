"""A scratch database for the operator: every step is counted, and every result comes from Postgres.

This is the environment of the demo. The operator acts on it through `inspect` and `attempt`; the
harness resets it between tasks. A step is one SQL statement, one look at the catalog, or one check
of the goal. An attempt runs in one transaction, kept only if the goal is reached, so that a repair
that does not help leaves nothing behind (except, as in any Postgres, sequences and what was run
outside a transaction).
"""

import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial

import asyncpg

from app.demo.memory import Trace
from app.demo.operator.catalog import CATALOG, INSPECT, WORK_SCHEMA, Catalog
from app.demo.operator.families import Task
from app.demo.operator.script import RepairScript

_USER_SCHEMAS = "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'"
_LEFT = r"""
SELECT datname FROM pg_database AS made WHERE datname ~ '^casebank_demo_\d+_' AND pg_has_role(datdba, 'MEMBER')
    AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid::text = split_part(made.datname, '_', 3))
"""
"""Reads the names of the scratch databases whose demos ended without dropping them."""


class StepsSpent(Exception):
    """Raised when the agent has no steps left for its task."""


@dataclass(frozen=True)
class Result:
    """The result of an attempt: the goal reached, an error, or neither."""

    reached: bool
    signature: str | None = None  # SQLSTATE and message without names: the kind of the error


class Scratch:
    """A scratch database with one task at a time; counts the steps and keeps their traces."""

    def __init__(self, connection: asyncpg.Connection, *, budget: int) -> None:
        self._connection = connection
        self._budget = budget
        self._goal = "false"
        self.traces: list[Trace] = []
        self.done = False

    @property
    def steps(self) -> int:
        """Number of steps since the last reset."""
        return len(self.traces)

    @property
    def reward(self) -> float:
        """Reward: 1 once the goal is reached, 0 before."""
        return float(self.done)

    async def reset(self, task: Task) -> None:
        """Empties the database and lays out a task; costs no step."""
        schemas = [row[0] for row in await self._connection.fetch(_USER_SCHEMAS)]
        drops = "".join(f'DROP SCHEMA "{name}" CASCADE;' for name in schemas)
        layout = f"{drops} CREATE SCHEMA {WORK_SCHEMA}; SET search_path = {WORK_SCHEMA}; {task.setup}"
        await self._connection.execute("SET client_min_messages = error;" + layout)
        self._goal, self.traces, self.done = task.goal, [], False

    async def step(self, action: RepairScript | None) -> Result | Catalog:
        """Performs an action: attempts a script, or inspects the catalog for None."""
        return await (self.inspect() if action is None else self.attempt(action))

    async def inspect(self) -> Catalog:
        """Returns the catalog; costs one step."""
        answer = await self._step("inspect", "the system catalog", partial(self._connection.fetchval, INSPECT))
        return CATALOG.validate_json(str(answer))

    async def attempt(self, script: RepairScript) -> Result:
        """Runs a script and checks the goal; if it is not reached, the transaction is rolled back.

        Raises:
            StepsSpent: no steps are left.
        """
        if script.autocommit:
            return await self._run(script)
        transaction = self._connection.transaction()
        await transaction.start()
        try:
            result = await self._run(script)
        except BaseException:
            await transaction.rollback()
            raise
        await (transaction.commit() if result.reached else transaction.rollback())
        return result

    async def _run(self, script: RepairScript) -> Result:
        try:
            for statement in script.statements:
                await self._step("sql", f"{statement};", partial(self._connection.execute, statement))
        except asyncpg.PostgresError as error:
            return Result(reached=False, signature=signature_of(error))
        self.done = bool(await self._step("check", "is the goal reached?", self._check))
        return Result(reached=self.done)

    async def _check(self) -> bool:
        try:
            async with self._connection.transaction():
                return bool(await self._connection.fetchval(f"SELECT ({self._goal})"))
        except asyncpg.PostgresError:  # the goal names an object that does not exist
            return False

    async def _step(self, tool: str, given: str, act: Callable[[], Awaitable[object]]) -> object:
        if self.steps >= self._budget:
            raise StepsSpent
        started = time.perf_counter()
        status, output = "ok", ""
        try:
            answer = await act()
            output = "read" if tool == "inspect" else str(answer)
        except asyncpg.PostgresError as error:
            status, output = "error", f"{error.sqlstate}: {error}"
            raise
        finally:
            elapsed_ms = round((time.perf_counter() - started) * 1000, 3)
            self.traces.append(Trace(tool, given, output, status, elapsed_ms))
        return answer


def signature_of(error: asyncpg.PostgresError) -> str:
    """Returns the kind of an error: its SQLSTATE and message, without names and positions."""
    message = re.sub(r'"[^"]*"| at (or near|end of input).*', "", error.message or "")
    return f"{error.sqlstate}: {message}"


@asynccontextmanager
async def scratch_database(dsn: str, *, budget: int) -> AsyncIterator[Scratch]:
    """Yields a `Scratch` in a new database on the server of `dsn`, and drops it at the end.

    Before, it drops those that killed demos left: the name tells the server's process for the demo that made it.
    """
    dsn = dsn.replace("postgresql+asyncpg://", "postgresql://", 1)
    admin = await asyncpg.connect(dsn)
    name = f"casebank_demo_{admin.get_server_pid()}_{secrets.token_hex(6)}"
    try:
        for (left,) in await admin.fetch(_LEFT):
            with suppress(asyncpg.ObjectInUseError, asyncpg.InvalidCatalogNameError):  # another demo drops it
                await admin.execute(f'DROP DATABASE "{left}"')
        await admin.execute(f'CREATE DATABASE "{name}" TEMPLATE template0')
        try:
            connection = await asyncpg.connect(dsn, database=name, server_settings={"synchronous_commit": "off"})
            try:
                yield Scratch(connection, budget=budget)
            finally:
                await connection.close()
        finally:
            await admin.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
    finally:
        await admin.close()
