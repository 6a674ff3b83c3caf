"""``python -m bench replay``: which order tells a plan that works first: on streams, in closed loops, on cells."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from bench.measure import Measurement, p50
from bench.replay import tau_cells
from bench.replay.babyai.world import MissionWorld
from bench.replay.case_bank import CaseBank
from bench.replay.houses import HouseWorld
from bench.replay.loops import Loop, Memory, NoMemory, WordsInCommon, World, play
from bench.replay.numbers import history, numbers
from bench.replay.shops.world import SHOP_WORLDS
from bench.replay.stream import REPORT_SEEDS, STREAMS
from bench.replay.support import support
from policy.history import History
from policy.orders import ORDERS
from policy.replay import CHOICE, Replay, replay
from writer.replays.profile_replay import FRESH

DRAWS = 1_000
"""Resamples of a bootstrap (Efron 1979)."""
NEAR_BEST, OVER_FUSED, BELOW_WORDS = 0.02, 0.07, 0.02
"""Aims of the choice: below the best order of each stream, over rank fusion on average, and below words in common."""
BACK_AFTER, BACK = 15, 0.9
"""Runs after a change of rules within which the choice is back at this share of its rate before the change."""
BANK, SMALL_BANK = 200, 40
"""Runs of the banks whose replay is timed."""
NIGHT_PROFILES, CORES, COST_ROUNDS = 10_000, 2, 20
NAMES = [*ORDERS, CHOICE]
SEEDS = REPORT_SEEDS[:3]
LOOPS: Sequence[World] = (*SHOP_WORLDS, HouseWorld())
MISSIONS = MissionWorld()
"""Played as well where the package minigrid is installed."""
MEMORIES: dict[str, type[NoMemory | WordsInCommon | CaseBank]] = {
    "no memory": NoMemory,
    "words in common": WordsInCommon,
    "casebank": CaseBank,
}


@dataclass(frozen=True, slots=True, eq=False)
class Streamed:
    """One stream, replayed under several seeds.

    Attributes:
        right: (questions, orders + 1), 1 where a plan that worked stood first; the questions of all seeds.
        ndcg: (orders + 1,), mean nDCG@4.
        skipped: reason for which it was not replayed; "" if it was.
        change: mean rate of the choice before the change of rules, and in BACK_AFTER runs after it; None: no change.
    """

    name: str
    right: NDArray[np.float32]
    ndcg: NDArray[np.float64]
    skipped: str = ""
    change: tuple[float, float] | None = None

    @property
    def first(self) -> NDArray[np.float64]:
        """(orders + 1,), share of questions for which a plan that worked stood first."""
        return np.asarray(self.right.mean(axis=0, dtype=np.float64))

    def gap(self, other: int) -> tuple[float, float, float]:
        """Returns the choice's share minus another's, and its 95 % interval by question."""
        return _mean_and_interval(self.right[:, -1] - self.right[:, other])


def _mean_and_interval(paired: NDArray[np.float32]) -> tuple[float, float, float]:
    """Returns the mean of paired differences, (n,), and its 95 % interval by resampling them."""
    drawn = np.random.default_rng(0).integers(len(paired), size=(DRAWS, len(paired)))
    low, high = np.quantile(paired[drawn].mean(axis=1), [0.025, 0.975])
    return float(paired.mean()), float(low), float(high)


def measure(data: Path) -> list[Measurement]:
    """Prints the tables and returns the measurements with their aims."""
    streamed = [_streamed(name, data) for name in STREAMS]
    Console().print(_table(streamed))
    for each in streamed:
        if each.skipped:
            Console().print(f"{each.name} is skipped: {each.skipped}")
    known = [each for each in streamed if not each.skipped]
    worlds = LOOPS if MISSIONS.skipped else (*LOOPS, MISSIONS)
    loops = {world.name: _loops(world) for world in worlds}
    Console().print(_loop_table(loops))
    cells = tau_cells.cells(data)
    Console().print(tau_cells.table(cells) if cells else f"tau-bench's cells are skipped: no runs in {data / 'tau'}")
    return [*_aims(known), *_loop_aims(loops), *tau_cells.aims(cells), *_cost()]


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
    replay(bank)
    return (time.perf_counter() - began) * 1e3


def _streamed(name: str, data: Path) -> Streamed:
    right, ndcg, change = [], [], []
    for seed in SEEDS:
        stream = STREAMS[name](seed, data)
        if stream.skipped:
            return Streamed(name, np.zeros((0, len(NAMES)), np.float32), np.zeros(len(NAMES)), stream.skipped)
        found = replay(history(stream.runs, asyncio.run(numbers(stream.runs))))
        right.append(found.right[~np.isnan(found.right[:, -1])])
        ndcg.append([found.tallies[each].ndcg for each in NAMES])
        if stream.change is not None:
            change.append(_around(found, stream.change))
    before_after = tuple(np.mean(change, axis=0)) if change else None
    return Streamed(name, np.concatenate(right), np.mean(ndcg, axis=0), change=before_after)


def _around(found: Replay, change: int) -> tuple[float, float]:
    """Returns the choice's rate in the 40 runs before the change, and in 40 from BACK_AFTER runs after it on."""
    choice = found.right[:, -1]
    return float(np.nanmean(choice[change - 40 : change])), float(
        np.nanmean(choice[change + BACK_AFTER : change + BACK_AFTER + 40])
    )


def _table(streamed: Sequence[Streamed]) -> Table:
    table = Table(title="Share of runs for which a plan that worked stood first; nDCG@4")
    for heading in ("stream", "questions", *NAMES):
        table.add_column(heading, justify="left" if heading == "stream" else "right")
    for each in streamed:
        if not each.skipped:
            cells = [f"{first:.3f}\n{ndcg:.3f}" for first, ndcg in zip(each.first, each.ndcg, strict=True)]
            table.add_row(each.name, str(len(each.right)), *cells)
    return table


def _aims(known: Sequence[Streamed]) -> list[Measurement]:
    words, fused = NAMES.index("words"), NAMES.index("fused")
    measured = []
    for each in known:
        best = int(each.first[:-1].argmax())
        for other, aim, against in ((best, -NEAR_BEST, NAMES[best]), (words, -BELOW_WORDS, "words in common")):
            gap, *interval = each.gap(other)
            low, high = interval
            measured.append(
                Measurement(
                    f"{each.name}: choice minus {against}",
                    gap,
                    "",
                    "best single order" if other == best else "",
                    aim,
                    at_least=True,
                    interval=(low, high),
                )
            )
        if each.change is not None:
            before, after = each.change
            detail = f"{after:.3f} of {before:.3f}, from {BACK_AFTER} runs after the change on"
            measured.append(Measurement(f"{each.name}: back", after / before, "", detail, BACK, at_least=True))
    over = float(np.mean([each.gap(fused)[0] for each in known]))
    measured.append(Measurement("choice minus rank fusion, mean of streams", over, "", "", OVER_FUSED, at_least=True))
    return measured


def _loops(world: World) -> dict[str, list[Loop]]:
    return {name: [play(world, _memory(make), seed) for seed in SEEDS] for name, make in MEMORIES.items()}


def _memory(make: type[NoMemory | WordsInCommon | CaseBank]) -> Memory:
    return make()


def _loop_table(loops: dict[str, dict[str, list[Loop]]]) -> Table:
    table = Table(title="Closed loops: calls a task, share solved, share solved at the first try")
    for heading in ("world", *MEMORIES):
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
    ratios = {
        name: float(
            np.mean([loop.calls for loop in each["casebank"]])
            / np.mean([loop.calls for loop in each["words in common"]])
        )
        for name, each in loops.items()
    }
    aims = [Measurement(f"{name}: calls, casebank / words", ratio, "x", "", 1.05) for name, ratio in ratios.items()]
    return [
        *aims,
        Measurement("calls, casebank / words, mean", float(np.mean(list(ratios.values()))), "x", "", 1.0),
        *([_solved_more(MISSIONS.name, loops[MISSIONS.name])] if MISSIONS.name in loops else []),
    ]


def _solved_more(name: str, loops: dict[str, list[Loop]]) -> Measurement:
    """Returns the share of tasks solved with casebank less that with words in common, task by task."""
    solved = {
        memory: np.array([each.solved for loop in loops[memory] for each in loop.played], dtype=np.float32)
        for memory in ("casebank", "words in common")
    }
    gap, low, high = _mean_and_interval(solved["casebank"] - solved["words in common"])
    detail = f"{solved['casebank'].mean():.3f} of {len(solved['casebank'])} tasks"
    return Measurement(
        f"{name}: solved, casebank minus words", gap, "", detail, 0.0, at_least=True, interval=(low, high), proven=True
    )
