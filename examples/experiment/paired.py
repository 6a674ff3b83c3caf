"""Paired differences between two arms over the same tasks, with their intervals, and the break-even of tokens."""

from collections.abc import Callable, Sequence
from itertools import accumulate
from math import inf, nan
from statistics import fmean

from app.demo.compare import Difference, Numbers, absolute, bootstrap, relative
from examples.experiment.episode import Episode

Pair = tuple[Episode, Episode]
"""The same task without memory, and with."""


def paired(without: Sequence[Episode], with_memory: Sequence[Episode]) -> list[Pair]:
    """Returns the pairs of the same task in which the environment failed in neither arm."""
    before = {episode.task_id: episode for episode in without}
    pairs = [(before[episode.task_id], episode) for episode in with_memory]
    return [pair for pair in pairs if not any(episode.ended == "environment failed" for episode in pair)]


def steps_change(pairs: Sequence[Pair], budget: int, seed: int) -> Difference:
    """Returns the steps with memory against without: -0.5 is half as many.

    A failure counts the whole budget, because failing early saves nothing.
    """
    return _bootstrap(pairs, lambda episode: episode.steps if episode.success else budget, relative, seed)


def success_points(pairs: Sequence[Pair], seed: int) -> Difference:
    """Returns how many more of 100 tasks succeed with memory."""
    return _bootstrap(pairs, lambda episode: 100.0 * episode.success, absolute, seed)


def tokens_change(pairs: Sequence[Pair], seed: int) -> Difference:
    """Returns the tokens with memory, its text included, against without; each step counts once."""
    return _bootstrap(pairs, lambda episode: episode.tokens_spent + episode.tokens_added, relative, seed)


def rating(episode: Episode, budget: int) -> float:
    """Returns the quality of a solution, 1 to 5: below 3 for a failure, 5 for a success in one step."""
    if episode.success:
        return 3 + 2 * (budget - episode.steps) / max(1, budget - 1)
    return 1 + min(max(episode.reward, 0.0), 1.0)


def rating_won(pairs: Sequence[Pair], budget: int, seed: int) -> Difference:
    """Returns how much better solutions are rated with memory."""
    return _bootstrap(pairs, lambda episode: rating(episode, budget), absolute, seed)


def of_a_kind(pairs: Sequence[Pair]) -> list[list[Pair]]:
    """Returns the pairs of each kind of task, in their order."""
    kinds: dict[str, list[Pair]] = {}
    for pair in pairs:
        kinds.setdefault(pair[0].family, []).append(pair)
    return list(kinds.values())


def _bootstrap(
    pairs: Sequence[Pair],
    value: Callable[[Episode], float],
    compare: Callable[[Numbers, Numbers], Numbers],
    seed: int,
) -> Difference:
    """Resamples tasks; several pairs of one task, such as of several wrong banks, count as their mean."""
    by_task: dict[str, list[tuple[float, float]]] = {}
    for before, after in pairs:
        by_task.setdefault(before.task_id, []).append((value(before), value(after)))
    means = [(fmean(one for one, _ in each), fmean(other for _, other in each)) for each in by_task.values()]
    return bootstrap([[mean] for mean in means], compare, seed)


def running_balance(pairs: Sequence[Pair]) -> list[int]:
    """Returns, after each task, the tokens that memory saved so far less those that it added."""
    gains = (before.tokens_spent - after.tokens_spent - after.tokens_added for before, after in pairs)
    return list(accumulate(gains))


def break_even(balance: Sequence[int]) -> float:
    """Returns the number of tasks after which the balance stays at zero or above, or infinity."""
    below = [place for place, tokens in enumerate(balance, start=1) if tokens < 0]
    first = below[-1] + 1 if below else 1
    if not balance:
        return nan
    return first if first <= len(balance) else inf
