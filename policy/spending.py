"""Bounds for repeated looks at a statistic while its evidence grows.

A chance of error is spent look by look, by how many decisions are in; where a look's bound lies follows from what was
spent before it and from how much information came since. Between looks the score of a difference moves as a Brownian
motion by its information (1 / squared standard error), which any efficient estimate does (Scharfstein, Tsiatis & Robins
1997). Where decisions on one query hang together, looks resemble each other more than that, and the error is smaller.

Sources: Armitage, McPherson & Rowe 1969 (the recursion); Lan & DeMets 1983, 1989 (spending, by calendar time);
Kim & DeMets 1987 (a power of time); Jennison & Turnbull 2000, chapters 7 and 19.
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from policy.logged import Floats

NORMAL = NormalDist()
FARTHEST_SD = 6.0
"""Standard deviations of the grid on either side."""
LEAST = 1e-300
POINTS = 128
"""Points of the grid that a density is kept on."""


@dataclass(frozen=True, slots=True)
class Spending:
    """A trial's permitted chance of a false promotion, and how much of it each interim look may spend.

    Attributes:
        error: chance, over the whole trial, that a policy without an advantage is ever promoted.
        early: share of ``error`` that is spent by ``soon``; the rest is spent evenly up to ``longest``.
        soon: number of decisions by which a policy with a useful advantage should be promoted.
        longest: number of decisions after which a trial ends.
        power: exponent of the early spending; 1: evenly, 3: nearly all of it close to ``soon``.
        every: decisions between two looks, up to ``soon``.
        then_every: decisions between two looks, after ``soon``.
    """

    error: float = 0.015
    early: float = 0.9
    soon: int = 1_000
    longest: int = 4_000
    power: float = 1.5
    every: int = 50
    then_every: int = 250

    def spent(self, decisions: Floats) -> Floats:
        """Returns the chance of error that may have been spent by so many decisions, (looks,)."""
        first = np.minimum(decisions / self.soon, 1) ** self.power
        rest = np.clip((decisions - self.soon) / (self.longest - self.soon), 0, 1)
        return np.asarray(self.error * (self.early * first + (1 - self.early) * rest))

    def looks(self) -> list[int]:
        """Returns the numbers of decisions at which a trial is looked at."""
        soon = range(self.every, self.soon, self.every)
        return [*soon, *range(self.soon, self.longest + 1, self.then_every)]


def bounds(information: Floats, spent: Floats) -> Floats:
    """Returns the standard errors above zero that each look requires, (looks,).

    Args:
        information: (looks,), by each look, rising.
        spent: (looks,), the chance of error that may have been spent by it, rising.
    """
    bounds_in_sd = []
    grid, density = np.zeros(1), np.ones(1)  # at no information the score is 0
    for step, still, now in zip(np.diff(information, prepend=0), np.diff(spent, prepend=0), information, strict=True):
        reach = np.sqrt(now) * FARTHEST_SD
        moved = np.linspace(-reach, reach, POINTS)
        after = _moved(grid, density, moved, step)
        bound = _passed_by(moved, after, still)
        grid = np.linspace(-reach, bound, POINTS)
        density = np.exp(np.interp(grid, moved, np.log(np.maximum(after, LEAST))))
        bounds_in_sd.append(bound / np.sqrt(now))
    return np.array(bounds_in_sd)


def _moved(grid: Floats, density: Floats, to: Floats, variance: float) -> Floats:
    """Returns the density on ``to`` once what lay on the grid has moved by a normal of this variance."""
    mass = density * np.gradient(grid) if len(grid) > 1 else density
    if len(grid) > 1:
        mass[[0, -1]] /= 2
    kernel = np.exp(-np.square(to[:, None] - grid[None]) / (2 * variance)) / np.sqrt(2 * np.pi * variance)
    return np.asarray(kernel @ mass)


def _passed_by(grid: Floats, density: Floats, chance: float) -> float:
    """Returns the point of the grid above which this share of the density lies."""
    strips = (density[1:] + density[:-1]) / 2 * np.diff(grid)
    above = np.concatenate((np.cumsum(strips[::-1])[::-1], [0.0]))  # falls along the grid
    inside = above > 0
    return float(np.interp(-np.log(chance), -np.log(above[inside]), grid[inside]))  # a normal's tail is nearly straight
