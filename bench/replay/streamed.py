"""The streams replayed: which order tells a plan that worked first, also in a bank that is new, changed or shuffled."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from app.demo.compare import Pairs, absolute, bootstrap
from bench.measure import Measurement
from bench.replay.numbers import Numbers, history, numbers
from bench.replay.runs import Run
from bench.replay.stream import STREAMS
from policy.orders import ORDERS
from policy.replay import CHOICE, Grades, comparison_of, grades, replay

NAMES = [*ORDERS, CHOICE]
WORDS, FUSED = NAMES.index("words"), NAMES.index("fused")
NEAR_BEST, OVER_FUSED, BELOW_WORDS = 0.02, 0.07, 0.02
"""Aims of the choice: below the best order of each stream, over rank fusion on average, and below words in common."""
BACK_AFTER, BACK = 15, 0.9
"""Runs after a change of rules within which the choice is back at this share of its rate before the change."""
FIRST_RUNS = 10
"""Runs of a new bank, in which the choice must be no worse than words in common."""
LEARNED_OF_CHANCE = 0.02
"""Most that tasks may tell of plans that were dealt among them by lot."""


@dataclass(frozen=True, slots=True, eq=False)
class Streamed:
    """One stream, replayed under several seeds, or once if it is the same under each.

    Attributes:
        right: (questions, orders + 1), 1 where a plan that worked stood first, by each order and last by the choice.
        ndcg: (orders + 1,), mean nDCG@4.
        early: (questions,), True for those from the first FIRST_RUNS runs of each seed.
        run: (questions,), name of each one's run; a recorded run has one name under all seeds.
        shuffled: rate of the choice less its rate without texts, where plans were dealt to the tasks by lot.
        skipped: reason for which it was not replayed; "" if it was.
        change: mean rate of the choice before the change of rules, and in BACK_AFTER runs after it; None: no change.
    """

    name: str
    right: NDArray[np.float32]
    ndcg: NDArray[np.float64]
    early: NDArray[np.bool_]
    run: NDArray[np.str_]
    shuffled: float = 0.0
    skipped: str = ""
    change: tuple[float, float] | None = None

    @property
    def first(self) -> NDArray[np.float64]:
        """(orders + 1,), share of questions for which a plan that worked stood first."""
        return np.asarray(self.right.mean(axis=0, dtype=np.float64))

    def by_run(self, order: int, rows: NDArray[np.bool_] | None = None) -> list[Pairs]:
        """Returns whether an order and the choice were right, one group for each run; of all questions, or of these.

        A recorded run is asked under each seed and has the same answer each time: its questions are not independent.
        """
        asked = np.ones_like(self.early) if rows is None else rows
        pairs, runs = self.right[asked][:, [order, -1]], self.run[asked]
        return [pairs[runs == run].tolist() for run in np.unique(runs)]

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the choice's share, from resampled runs."""
        found = bootstrap([[(0.0, right) for _, right in pairs] for pairs in self.by_run(-1)], absolute)
        return found.low, found.high


def replay_stream(name: str, data: Path, seeds: Sequence[int]) -> Streamed:
    """Returns the stream replayed under each seed."""
    right: list[NDArray[np.float32]] = []
    ndcg, early, run, shuffled, change = [], [], [], [], []
    for seed in seeds:
        stream = STREAMS[name](seed, data)
        if stream.skipped:
            none = np.zeros((0, len(NAMES)), np.float32)
            early_none, run_none = np.zeros(0, np.bool_), np.zeros(0, np.str_)
            return Streamed(name, none, np.zeros(len(NAMES)), early_none, run_none, skipped=stream.skipped)
        numbered = asyncio.run(numbers(stream.runs))
        shuffled.append(_of_chance(stream.runs, numbered, seed))
        if stream.fixed and right:
            continue
        bank = history(stream.runs, numbered)
        found = grades(bank, comparison_of(bank))
        question = found.worth > 0
        right.append(found.first[:, question].T)
        ndcg.append(found.ndcg[:, question].mean(axis=1))
        early.append((np.arange(len(question)) < FIRST_RUNS)[question])
        run.append(np.array([each.recorded or f"{seed} {t}" for t, each in enumerate(stream.runs)])[question])
        if stream.change is not None:
            change.append(_around(found, stream.change))
    before_after = tuple(np.mean(change, axis=0)) if change else None
    return Streamed(
        name,
        np.concatenate(right),
        np.mean(ndcg, axis=0),
        np.concatenate(early),
        np.concatenate(run),
        float(np.mean(shuffled)),
        change=before_after,
    )


def _of_chance(runs: Sequence[Run], numbered: Sequence[Numbers], seed: int) -> float:
    """Returns the choice's rate where plans and outcomes are dealt by lot, less its rate where no task has a text."""
    dealt = np.random.default_rng(seed).permutation(len(runs))
    shuffled = [replace(run, succeeded=runs[other].succeeded) for run, other in zip(runs, dealt, strict=True)]
    plans = [replace(each, moves=numbered[other].moves) for each, other in zip(numbered, dealt, strict=True)]
    silent = [replace(each, terms=each.terms[:0], vector=np.zeros_like(each.vector)) for each in plans]
    with_texts, without = (replay(history(shuffled, each)).tallies[CHOICE].first for each in (plans, silent))
    return with_texts - without


def _around(found: Grades, change: int) -> tuple[float, float]:
    """Returns the choice's rate in the 40 runs before the change, and in 40 from BACK_AFTER runs after it on."""
    choice = np.where(found.worth > 0, found.first[-1], np.nan)
    return float(np.nanmean(choice[change - 40 : change])), float(
        np.nanmean(choice[change + BACK_AFTER : change + BACK_AFTER + 40])
    )


def table(replayed: Sequence[Streamed]) -> Table:
    """Returns the rates of each order on each stream."""
    shown = Table(title="Share of runs for which a plan that worked stood first; nDCG@4")
    for heading in ("stream", "questions", *NAMES, "95 %"):
        shown.add_column(heading, justify="left" if heading == "stream" else "right")
    for each in replayed:
        if not each.skipped:
            cells = [f"{first:.3f}\n{ndcg:.3f}" for first, ndcg in zip(each.first, each.ndcg, strict=True)]
            shown.add_row(each.name, str(len(each.right)), *cells, "\n".join(f"{end:.3f}" for end in each.interval))
    return shown


def aims(known: Sequence[Streamed]) -> list[Measurement]:
    """Returns the choice's distance from other orders, and from itself before a change of rules."""
    measured = []
    for each in known:
        best = int(each.first[:-1].argmax())
        charged = (each.first + each.ndcg) / 2
        cheapest = int(charged[:-1].argmax())
        what = f"{each.name}: choice minus {{}}"
        measured += [
            _gap(what.format(NAMES[best]), each.by_run(best), -NEAR_BEST, "best single order"),
            Measurement(
                what.format(f"{NAMES[cheapest]}, first place and nDCG@4"),
                float(charged[-1] - charged[cheapest]),
                "",
                "half each, as replay charges; best single order",
                -NEAR_BEST,
                at_least=True,
            ),
            _gap(what.format("words in common"), each.by_run(WORDS), -BELOW_WORDS),
            Measurement(f"{each.name}: learned from shuffled runs", each.shuffled, "", "", LEARNED_OF_CHANCE),
        ]
        if each.change is not None:
            before, after = each.change
            detail = f"{after:.3f} of {before:.3f}, from {BACK_AFTER} runs after the change on"
            measured.append(Measurement(f"{each.name}: back", after / before, "", detail, BACK, at_least=True))
    if known:
        early = [pairs for each in known for pairs in each.by_run(WORDS, each.early)]
        questions = f"{sum(map(len, early))} questions"
        over = float(np.mean([each.first[-1] - each.first[FUSED] for each in known]))
        measured += [
            _gap(f"first {FIRST_RUNS} runs: choice minus words in common", early, 0.0, questions),
            Measurement("choice minus rank fusion, mean of streams", over, "", "", OVER_FUSED, at_least=True),
        ]
    return measured


def _gap(name: str, by_run: Sequence[Pairs], aim: float, detail: str = "") -> Measurement:
    gap = bootstrap(by_run, absolute)
    return Measurement(name, gap.value, "", detail, aim, at_least=True, interval=(gap.low, gap.high))
