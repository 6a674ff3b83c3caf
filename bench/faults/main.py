"""Kills one process after another under a steady load, and compares the bank with the acknowledgements."""

import asyncio
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg
import httpx
from tqdm import tqdm

from app import postgres
from app.doctor import examine
from app.processes.own_service import OwnService, free_port
from app.settings import Limits, Settings, WorkerPace
from bench.faults.ledger import Ledger
from bench.faults.load import ANSWER_TIMEOUT_S, Backend
from bench.faults.probe import Back, back
from bench.faults.reckoning import Fault, drained, reckon
from bench.faults.supervised import Supervised
from bench.faults.victims import VICTIMS, Victims, deck
from bench.fill import tasks
from bench.measure import Measurement

USERS, BACKENDS_EACH = 2, 2
BACK_WITHIN_S = 30.0
LAST_RUN_S = 60.0
"""Seconds until the last runs must be acknowledged."""
LEASE_S = 20.0
"""Lease of the worker; short, because the end waits for cases of a killed worker."""
SHOWN = 3


@dataclass
class Battle:
    """Kills and their consequences.

    Attributes:
        ledger: acknowledgements to the clients.
        back: times until all worked again, by victim.
        never_back: the last victim, if the loop did not come back; the kills end there.
    """

    ledger: Ledger = field(default_factory=Ledger)
    back: dict[str, list[Back]] = field(default_factory=lambda: defaultdict(list))
    never_back: list[str] = field(default_factory=list)


async def faults(home: Path, kills: int, seed: int, only: Collection[str] = VICTIMS) -> list[Measurement]:
    """Kills processes one after the other, and returns the times to recover by victim, and every fault.

    Args:
        home: new folder for the benchmark's own service, worker and Postgres; their logs go beside it.
        kills: number of kills.
        seed: seed of the order of victims, and of the clients.
        only: victims to choose from.
    """
    settings = _settings(home)
    port = free_port()
    where = OwnService(settings, f"http://127.0.0.1:{port}", pid=0)
    service = _program(settings, home.parent / "service.log", "serve", "--port", str(port))
    worker = _program(settings, home.parent / "worker.log", "worker")
    victims = Victims(service, worker, home / "postgres", random.Random(seed))
    battle = Battle()
    try:
        async with _running(service), _running(worker):
            async with _load(where, battle.ledger, seed) as probe:
                await _rounds(battle, victims, probe, deck(kills, seed, only))
            faults = await _faults(settings, battle)
    finally:
        await asyncio.to_thread(_stop_postgres, home)
    ended = [str(status) for program in (service, worker) for status in program.ended_by_itself]
    faults.append(Fault("ends of a program that was not killed", ended))
    return [*_times(battle.back), *(_as_measurement(fault) for fault in faults), _volume(battle.ledger)]


def _settings(home: Path) -> Settings:
    return Settings(
        home=home,
        database_url=None,
        worker_in_service=False,
        limits=Limits.off(),  # the load comes from few users
        worker_pace=WorkerPace(lease_s=LEASE_S),
        train_every_s=0,
        upkeep_every_s=86_400,
    )


def _program(settings: Settings, log: Path, *words: str) -> Supervised:
    return Supervised((sys.executable, "-m", "app.cli", *words), settings.as_environment(), log)


@asynccontextmanager
async def _running(program: Supervised) -> AsyncIterator[None]:
    task = asyncio.create_task(program.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def _stop_postgres(home: Path) -> None:
    """Stops a server whose users were killed."""
    if (home / "postgres").exists() and not postgres.is_dead(home):
        with postgres.running(home):
            pass


@asynccontextmanager
async def _load(where: OwnService, ledger: Ledger, seed: int) -> AsyncIterator[Backend]:
    """Yields a backend for probes while the others work; at the end their last runs are acknowledged."""
    async with AsyncExitStack() as stack:

        async def backend(name: str, user: str, number: int) -> Backend:
            http = httpx.AsyncClient(base_url=where.base_url, headers=where.headers(user), timeout=ANSWER_TIMEOUT_S)
            await stack.enter_async_context(http)
            return Backend(name, http, ledger, list(tasks(seed + number, 500)), random.Random(seed + number))

        probe = await backend("probe", "probe", 0)
        if await back(probe, time.perf_counter()) is None:
            raise TimeoutError("the service did not start")
        ledger.forget_requests()  # those until it had started
        names = [(user, f"backend-{user}-{each}") for user in range(USERS) for each in range(BACKENDS_EACH)]
        backends = [await backend(name, f"user-{user}", 1 + n) for n, (user, name) in enumerate(names)]
        working = [asyncio.create_task(each.run()) for each in backends]
        try:
            yield probe
        finally:
            for each in backends:
                each.stopped.set()
            _, hanging = await asyncio.wait(working, timeout=LAST_RUN_S)
            for task in hanging:
                task.cancel()


async def _rounds(battle: Battle, victims: Victims, probe: Backend, order: Sequence[str]) -> None:
    for victim in tqdm(order, unit=" kills", desc="faults", disable=None):
        await asyncio.sleep(victims.rng.random())  # so that it falls into any moment of a run, a lease, a checkpoint
        await victims.kill(victim)
        took = await back(probe, time.perf_counter())
        if took is None:
            battle.never_back.append(victim)
            return
        battle.back[victim].append(took)


async def _faults(settings: Settings, battle: Battle) -> list[Fault]:
    """Returns every kind of fault with its cases, checked while service and worker run."""
    never_back = Fault("kills that it never came back from", battle.never_back)
    if battle.never_back:
        return [never_back]
    with_server = await asyncio.to_thread(postgres.start, settings.home)
    try:
        bank = await asyncpg.connect(with_server.url().replace("+asyncpg", ""))
        try:
            await drained(bank)
            in_bank = await reckon(bank, battle.ledger)
        finally:
            await bank.close()
        complaints = [name for name, finding in (await examine(settings)).items() if finding.ok is False]
    finally:
        await asyncio.to_thread(postgres.release, settings.home)
    unexpected = [f"{count} x {what}" for what, count in battle.ledger.unexpected.items()]
    return [
        never_back,
        *in_bank,
        Fault("answers that no outage explains", unexpected),
        Fault("complaints of casebank doctor", complaints),
    ]


def _times(took: Mapping[str, Sequence[Back]]) -> list[Measurement]:
    """Returns for each victim the longest time until the service answered again, with the other times in the detail."""
    rows = []
    for victim, times in sorted(took.items()):
        serving, working = [each.serving for each in times], [each.working for each in times]
        detail = f"{len(times)} kills; {_spread(serving)}; the worker works: {_spread(working)}"
        rows.append(Measurement(f"serves after kill -9: {victim}", max(serving), "s", detail, aim=BACK_WITHIN_S))
    return rows


def _spread(seconds: Sequence[float]) -> str:
    middle, most = statistics.median(seconds), _percentile(seconds, 95)
    return f"median {middle:.1f}, 95 % {most:.1f}, longest {max(seconds):.1f} s"


def _percentile(values: Sequence[float], percent: int) -> float:
    """The nearest rank: a value that was measured."""
    return sorted(values)[-(-len(values) * percent // 100) - 1]


def _as_measurement(fault: Fault) -> Measurement:
    more = f", … {len(fault.cases) - SHOWN} more" if len(fault.cases) > SHOWN else ""
    return Measurement(fault.name, len(fault.cases), "", ", ".join(fault.cases[:SHOWN]) + more, aim=0)


def _volume(ledger: Ledger) -> Measurement:
    sent = ", ".join(f"{count} {how}" for how, count in ledger.requests.most_common())
    detail = f"{len(ledger.rewards)} rewards; {len(ledger.missing)} retrievals lost with a crash; requests: {sent}"
    return Measurement("acknowledged retains", len(ledger.retains), "", detail)
