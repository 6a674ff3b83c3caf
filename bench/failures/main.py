"""The benchmark of failures: a scripted agent in closed loops, with and without memory, in worlds fixed beforehand."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx

from app.demo.compare import bootstrap, relative
from app.processes.own_service import OwnService, own_service
from app.settings import Settings
from bench.failures.kinds import World
from bench.failures.loop import Arms, Played, play_arms
from bench.failures.shell import ShellWorld
from bench.failures.sql import SqlWorld
from bench.measure import Measurement, p50

SEEDS, TASKS = (61, 62, 63, 64, 65, 66), 100
"""Seeds that were fixed beforehand, and tasks of each."""
LEAN = 250
"""Tokens that the median text at the start should have at most."""


async def failures(home: Path) -> list[Measurement]:
    """Measures calls a task in each arm, and how often advice came and helped."""
    async with own_service(Settings(home=home)) as service:
        sql, shell = await asyncio.gather(_world(SqlWorld(), service), _world(ShellWorld(home / "shell"), service))
    return [*sql, *shell]


async def _world(world: World, service: OwnService) -> list[Measurement]:
    """Plays a world's seeds, each with a user of its own, and returns its rows."""
    seeds = []
    for seed in SEEDS:
        headers = service.headers(f"{world.name}-{seed}")
        async with httpx.AsyncClient(base_url=service.base_url, headers=headers, timeout=30) as client:
            seeds.append(await play_arms(world, seed, TASKS, client))
    return rows_of(f"failures: {world.name}", seeds)


def rows_of(name: str, seeds: Sequence[Arms]) -> list[Measurement]:
    """Returns the numbers of a world over its seeds; intervals are over the seeds."""
    errors = sum(len(arms.errors) for arms in seeds)
    names: dict[str, Callable[[Arms], Sequence[Played]]] = {
        "no memory": lambda arms: arms.without,
        "keyword memory": lambda arms: arms.keywords,
        "keyword memory at failures": lambda arms: arms.at_failures,
        "casebank": lambda arms: arms.casebank,
    }
    rows = [_calls(f"{name}, {arm}", [each for arms in seeds for each in of(arms)]) for arm, of in names.items()]
    for rival in ("keyword memory", "keyword memory at failures"):
        pairs = [
            [(before.calls, after.calls) for before, after in zip(names[rival](arms), arms.casebank, strict=True)]
            for arms in seeds
        ]
        change = bootstrap(pairs, relative)
        interval, detail = (change.low, change.high), f"{len(seeds)} seeds, {errors} errors of memory"
        title = f"{name}, calls of casebank against {rival}"
        rows.append(Measurement(title, change.value, "", detail, aim=0, interval=interval, proven=True))
    for arm in ("keyword memory at failures", "casebank"):
        played = [each for arms in seeds for each in names[arm](arms)]
        failed, advised, helped = (
            sum(getattr(each, count) for each in played) for count in ("failed", "advised", "helped")
        )
        rows += [
            Measurement(f"{name}, {arm}: failures with advice", advised / failed, "", f"{advised} of {failed}"),
            Measurement(f"{name}, {arm}: first fix worked next", helped / advised, "", f"{helped} of {advised}"),
        ]
    return [*rows, _tokens(f"{name}, casebank: text at the start", [each for arms in seeds for each in arms.casebank])]


def _calls(name: str, played: Sequence[Played]) -> Measurement:
    tasks = len(played)
    solved, first = (sum(getattr(each, part) for each in played) / tasks for part in ("success", "first_try"))
    calls = sum(each.calls for each in played) / tasks
    return Measurement(name, calls, "calls a task", f"{solved:.0%} solved, {first:.0%} at the first try, {tasks} tasks")


def _tokens(name: str, played: Sequence[Played]) -> Measurement:
    """Returns the median length of the texts that are not empty."""
    tokens = [each.tokens for each in played if each.tokens]
    detail = f"median of {len(tokens)} texts, the longest {max(tokens, default=0)}"
    return Measurement(name, p50(tokens or [0]), "tokens", detail, aim=LEAN)
