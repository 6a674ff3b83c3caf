"""``python -m bench replay``: which order tells a plan that works first: on streams, in closed loops, on cells."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from app.demo.compare import absolute, bootstrap
from bench.measure import Measurement, p50
from bench.replay import judged, served, streamed, tau_cells, tau_folds, use
from bench.replay.babyai.world import MissionWorld
from bench.replay.case_bank import CaseBank
from bench.replay.household import HouseholdWorld
from bench.replay.houses import HouseWorld
from bench.replay.loops import Loop, Memory, NoMemory, WordsInCommon, World, play
from bench.replay.night import night
from bench.replay.numbers import history, numbers
from bench.replay.shops.world import SHOP_WORLDS
from bench.replay.stream import REPORT_SEEDS, STREAMS
from bench.replay.streamed import FIRST_RUNS
from bench.replay.support import support
from policy.history import History
from policy.replay import replay as replay_runs
from writer.replays.profile_replay import FRESH

BANK, SMALL_BANK = 200, 40
"""Runs of the banks whose replay is timed."""
NIGHT_PROFILES, CORES, COST_ROUNDS = 10_000, 2, 20
SEEDS = REPORT_SEEDS[:3]
GAMES, MISSIONS = HouseholdWorld(), MissionWorld()
"""Worlds with an expert's runs in the bank before the first task; missions need the package minigrid."""
LOOPS: Sequence[World] = (*SHOP_WORLDS, HouseWorld(), GAMES)
SERVED = "casebank, service"
"""The running service, whose ``memory_context`` the agent reads; it plays the shops."""
MEMORIES: dict[str, type[NoMemory | WordsInCommon | CaseBank]] = {
    "no memory": NoMemory,
    "words in common": WordsInCommon,
    "casebank": CaseBank,
}


async def replay(home: Path, data: Path | None) -> list[Measurement]:
    """Prints the tables and returns the measurements with their aims; ``home`` is an empty folder for a service."""
    by_service = await served.played(home / "service", SHOP_WORLDS, SEEDS)
    whole_night = await night(home, data)
    measured = await asyncio.to_thread(_measured, data or Path(), by_service)  # it runs event loops of its own
    return [*measured, whole_night]


def _measured(data: Path, by_service: served.Served) -> list[Measurement]:
    show = Console().print
    replayed = [streamed.replay_stream(name, data, SEEDS) for name in STREAMS]
    show(streamed.table(replayed))
    for each in replayed:
        if each.skipped:
            show(f"{each.name} is skipped: {each.skipped}")
    worlds = LOOPS if MISSIONS.skipped else (*LOOPS, MISSIONS)
    loops = {world.name: _loops(world) for world in worlds}
    for name, played in by_service.loops.items():
        loops[name][SERVED] = list(played)
    show(_loop_table(loops))
    tries = {name: [judged.tries_of(_memory(make), seed) for seed in SEEDS] for name, make in MEMORIES.items()}
    show(judged.table(tries))
    domains = tau_folds.domains(data)
    cells, curves = tau_cells.cells(domains), use.curves(domains)
    if domains:
        show(tau_cells.table(cells))
        show(use.table(curves))
    else:
        show(f"tau-bench's cells are skipped: no runs in {data / 'tau'}")
    return [
        *streamed.aims([each for each in replayed if not each.skipped]),
        *_loop_aims(loops),
        *by_service.rows(),
        *judged.aims(tries),
        *tau_cells.aims(cells),
        *use.aims(curves),
        *_cost(),
    ]


def _cost() -> list[Measurement]:
    """Measures the arithmetic of a replay, for each new case and for a night; reading and storing are not in it."""
    runs = [run for seed in (0, 1) for run in support(seed).runs]
    numbered = asyncio.run(numbers(runs))

    def ms(count: int) -> float:
        bank = history(runs[:count], numbered[:count])
        return p50([_timed_ms(bank) for _ in range(COST_ROUNDS)])

    night_s = ms(SMALL_BANK) * NIGHT_PROFILES / CORES / 1e3
    a_case = ms(BANK) / (FRESH * BANK)
    detail = f"a replay of {BANK} runs, for each of the {FRESH * BANK:.0f} cases that make it due"
    night = f"{NIGHT_PROFILES:,} profiles of {SMALL_BANK} runs, {CORES} cores"
    return [
        Measurement("replay for a new case", a_case, "ms", detail, 5),
        Measurement("replays of a night, arithmetic", night_s, "s", night, 300),
    ]


def _timed_ms(bank: History) -> float:
    began = time.perf_counter()
    replay_runs(bank)
    return (time.perf_counter() - began) * 1e3


def _loops(world: World) -> dict[str, list[Loop]]:
    return {name: [play(world, _memory(make), seed) for seed in SEEDS] for name, make in MEMORIES.items()}


def _memory(make: type[NoMemory | WordsInCommon | CaseBank]) -> Memory:
    return make()


def _loop_table(loops: dict[str, dict[str, list[Loop]]]) -> Table:
    table = Table(title="Closed loops: calls a task, share solved, share solved at the first try")
    for heading in ("world", *MEMORIES, SERVED):
        table.add_column(heading, justify="left" if heading == "world" else "right")
    for name, by_memory in loops.items():
        cells = [
            "  ".join(
                f"{np.mean([getattr(loop, each) for loop in played]):.3f}" for each in ("calls", "solved", "first_try")
            )
            for played in by_memory.values()
        ]
        table.add_row(name, *cells)
    return table


def _loop_aims(loops: dict[str, dict[str, list[Loop]]]) -> list[Measurement]:
    def ratios(memory: str) -> dict[str, float]:
        """Returns the calls of a memory for each with words in common, in each world that it played."""
        calls = {
            name: {each: np.mean([loop.calls for loop in loops]) for each, loops in of.items()}
            for name, of in loops.items()
        }
        return {name: float(each[memory] / each["words in common"]) for name, each in calls.items() if memory in each}

    return [
        *(
            Measurement(f"{name}: calls, {memory} / words", ratio, "x", "", 1.05)
            for memory in ("casebank", SERVED)
            for name, ratio in ratios(memory).items()
        ),
        Measurement("calls, casebank / words, mean", float(np.mean(list(ratios("casebank").values()))), "x", "", 1.0),
        _early(loops),
        *(_solved_more(world.name, loops[world.name]) for world in (GAMES, MISSIONS) if world.name in loops),
    ]


def _early(loops: dict[str, dict[str, list[Loop]]]) -> Measurement:
    """Returns the calls in the first tasks of the worlds that begin with an empty bank, casebank / words in common."""

    def calls(memory: str) -> int:
        new = [each for name, each in loops.items() if name not in {GAMES.name, MISSIONS.name}]
        played = [loop.played[:FIRST_RUNS] for each in new for loop in each[memory]]
        return sum(task.calls for tasks in played for task in tasks)

    casebank, words = calls("casebank"), calls("words in common")
    detail = f"{casebank} of {words} calls"
    return Measurement(f"first {FIRST_RUNS} tasks: calls, casebank / words", casebank / words, "x", detail, 1.0)


def _solved_more(name: str, loops: dict[str, list[Loop]]) -> Measurement:
    """Returns the share of tasks solved with casebank less that with words in common, task by task."""
    words, casebank = (
        [each.solved for loop in loops[memory] for each in loop.played] for memory in ("words in common", "casebank")
    )
    gap = bootstrap([[pair] for pair in zip(words, casebank, strict=True)], absolute)
    detail, interval = f"{np.mean(casebank):.3f} of {len(casebank)} tasks", (gap.low, gap.high)
    title = f"{name}: solved, casebank minus words"
    return Measurement(title, gap.value, "", detail, 0.0, at_least=True, interval=interval, proven=True)
