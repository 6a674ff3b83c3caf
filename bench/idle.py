"""The time of a service's start, and a service that nobody calls: its statements and processor time a minute."""

import asyncio
import re
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import httpx
import psutil

from app import postgres
from app.jobs.schedule import SEAL_EVERY_S
from app.processes.own_service import OwnService, own_service
from app.settings import Settings
from bench.fill import AGENT
from bench.measure import Measurement, p50

WATCHED_S = 60.0
STARTS = 3
IDLE_S = 5.0
"""The setting of the service that is to come to rest; the default would only take longer."""
_IMPORTS = "import app.cli, app.commands.serve"
_STATEMENT = re.compile(rb"LOG:  (?:statement|execute [^:]*): ")


@dataclass(frozen=True, slots=True)
class Watched:
    """A span of idle time: statements a minute, and shares of a core in percent, of the service and of its Postgres."""

    statements: float
    service: float
    database: float


async def idle(home: Path) -> list[Measurement]:
    """Measures starts, and idle minutes, before a rest and in it."""
    settings = Settings(home=home)
    measured = await starts(settings)
    async with _logged(settings) as awake:
        before = await _watched(home, awake)
    async with _logged(settings.model_copy(update={"idle_s": IDLE_S})) as resting:
        await asyncio.sleep(SEAL_EVERY_S + 2 * IDLE_S)  # by default the seal of the audit comes long before a rest
        after = await _watched(home, resting)
    detail = f"Postgres beside it {before.database:.2f} %, {before.statements:g} statements a minute"
    return [
        *measured,
        Measurement("idle service, before it rests", before.service, "% of a core", detail, aim=0.5),
        Measurement("at rest", after.service, "% of a core", f"Postgres beside it {after.database:.2f} %", aim=0.5),
        Measurement("statements at rest", after.statements, "a minute", f"in {WATCHED_S:.0f} s", aim=0.0),
    ]


async def starts(settings: Settings, rounds: int = STARTS) -> list[Measurement]:
    """Measures the first start on an empty home, and later ones beside their imports and their Postgres alone."""
    began = time.perf_counter()
    async with own_service(settings) as service:
        first_s = time.perf_counter() - began
        await _retain(service)
    whole_s, imports_s, postgres_s = [], [], []
    for _ in range(rounds):
        began = time.perf_counter()
        async with own_service(settings):
            whole_s.append(time.perf_counter() - began)
        began = time.perf_counter()
        await (await asyncio.create_subprocess_exec(sys.executable, "-c", _IMPORTS)).wait()
        imports_s.append(time.perf_counter() - began)
        began = time.perf_counter()
        with postgres.running(settings.home):
            postgres_s.append(time.perf_counter() - began)
    rest_s = p50(whole_s) - p50(imports_s) - p50(postgres_s)
    detail = f"p50 of {rounds}"
    return [
        Measurement("start on an empty home", first_s, "s", "one; makes the database and its tables"),
        Measurement("start on an existing home", p50(whole_s), "s", f"{detail}, Postgres's included", aim=3.0),
        Measurement("start: Python and imports", p50(imports_s), "s", f"{detail}, alone"),
        Measurement("start: Postgres", p50(postgres_s), "s", f"{detail}, alone"),
        Measurement("start: the rest", rest_s, "s", "checks of the schema, embedder, jobs, and the first answer"),
    ]


@asynccontextmanager
async def _logged(settings: Settings) -> AsyncIterator[OwnService]:
    """Yields a service that was used once, whose Postgres logs every statement."""
    url = postgres.start(settings.home).url().replace("+asyncpg", "")
    owner = await asyncpg.connect(url)
    await owner.execute("ALTER SYSTEM SET log_statement = 'all'")
    await owner.execute("SELECT pg_reload_conf()")
    await owner.close()
    async with own_service(settings) as service:
        await _retain(service)
        await asyncio.sleep(IDLE_S)
        yield service


async def _retain(service: OwnService) -> None:
    async with httpx.AsyncClient(base_url=service.base_url, headers=service.headers("user-1"), timeout=60) as client:
        run = {"agent": AGENT, "task": "water the garden", "outcome": "success"}
        (await client.post("/v1/retain", json=run)).raise_for_status()
        (await client.post("/v1/retrieve", json={"agent": AGENT, "query": "the garden"})).raise_for_status()


async def _watched(home: Path, service: OwnService) -> Watched:
    statements, own, database = _statements(home), _processor_s(service.pid), _processor_s(_server(home))
    await asyncio.sleep(WATCHED_S)
    return Watched(
        (_statements(home) - statements) * 60 / WATCHED_S,
        (_processor_s(service.pid) - own) * 100 / WATCHED_S,
        (_processor_s(_server(home)) - database) * 100 / WATCHED_S,
    )


def _server(home: Path) -> int:
    return int((home / "postgres" / "postmaster.pid").read_text().split()[0])


def _processor_s(pid: int) -> float:
    """Returns the processor seconds of a process and its children, ended ones included."""
    process = psutil.Process(pid)
    times = [process.cpu_times(), *(child.cpu_times() for child in process.children(recursive=True))]
    return float(sum(each.user + each.system for each in times))


def _statements(home: Path) -> int:
    return len(_STATEMENT.findall((home / "postgres.log").read_bytes()))
