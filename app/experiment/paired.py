"""Paired differences between two arms over the same tasks, with their intervals, and where the price is paid back."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf, nan

import numpy as np
from numpy.typing import NDArray

from app.experiment.episode import Episode

RESAMPLES = 2000

Pair = tuple[Episode, Episode]
"""The same task without memory, and with."""
Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference and its 95 % interval, from a bootstrap over tasks; no number without tasks."""

    value: float
    low: float
    high: float


def paired(without: Sequence[Episode], with_memory: Sequence[Episode]) -> list[Pair]:
    """Returns the pairs of the same task in which the environment failed in neither arm."""
    before = {episode.task_id: episode for episode in without}
    pairs = [(before[episode.task_id], episode) for episode in with_memory]
    return [pair for pair in pairs if not any(episode.ended == "environment failed" for episode in pair)]


def steps_change(pairs: Sequence[Pair], budget: int, seed: int) -> Difference:
    """Returns the steps with memory against without: -0.5 is half as many.

    A failure counts the whole budget, for to fail early saves nothing.
    """
    return _bootstrap(pairs, lambda episode: episode.steps if episode.success else budget, _relative, seed)


def success_points(pairs: Sequence[Pair], seed: int) -> Difference:
    """Returns how many more of 100 tasks succeed with memory."""
    return _bootstrap(pairs, lambda episode: 100.0 * episode.success, _absolute, seed)


def _relative(before: Numbers, after: Numbers) -> Numbers:
    steps = before.mean(axis=-1)
    changed: Numbers = after.mean(axis=-1) / np.where(steps == 0, np.nan, steps) - 1
    return changed


def _absolute(before: Numbers, after: Numbers) -> Numbers:
    changed: Numbers = (after - before).mean(axis=-1)
    return changed


def _bootstrap(
    pairs: Sequence[Pair],
    value: Callable[[Episode], float],
    compare: Callable[[Numbers, Numbers], Numbers],
    seed: int,
) -> Difference:
    """Resamples tasks; the several pairs of one task, as of several wrong banks, stay together as their mean."""
    by_task: dict[str, list[tuple[float, float]]] = {}
    for before, after in pairs:
        by_task.setdefault(before.task_id, []).append((value(before), value(after)))
    if not by_task:
        return Difference(nan, nan, nan)
    values = np.array([np.mean(each, axis=0) for each in by_task.values()], dtype=np.float64)  # (tasks, 2)
    drawn = np.random.default_rng(seed).integers(len(values), size=(RESAMPLES, len(values)))
    spread = compare(values[drawn, 0], values[drawn, 1])
    low, high = np.nanquantile(spread, (0.025, 0.975))
    return Difference(float(compare(values[:, 0], values[:, 1])), float(low), float(high))


def running_balance(pairs: Sequence[Pair]) -> list[int]:
    """Returns, after each task, the tokens that memory saved so far less those that it added."""
    gains = (before.tokens_spent - after.tokens_spent - after.tokens_added for before, after in pairs)
    return list(accumulate(gains))


def break_even(balance: Sequence[int]) -> float:
    """Returns the number of tasks from which on the balance is never below zero again; infinite if that never comes."""
    below = [place for place, tokens in enumerate(balance, start=1) if tokens < 0]
    first = below[-1] + 1 if below else 1
    if not balance:
        return nan
    return first if first <= len(balance) else inf
