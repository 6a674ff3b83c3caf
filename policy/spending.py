"""Bounds for repeated looks at a difference while its evidence grows, so that the whole trial's chance of error holds.

The permitted chance of error is spent look by look, by the number of decisions so far. A look's bound follows from the
chance spent before it and from the information gained since. Between looks the score of a difference moves as a
Brownian motion by its information (1 / squared standard error), as the score of any efficient estimate does
(Scharfstein, Tsiatis & Robins 1997). If decisions on one query are correlated, looks resemble each other more, and the
error is smaller.

Sources: Armitage, McPherson & Rowe 1969 (the recursion); Lan & DeMets 1983, 1989 (spending, by calendar time);
Kim & DeMets 1987 (a power of time); Jennison & Turnbull 2000, chapters 7 and 19.
"""

from dataclasses import dataclass

import numpy as np

from policy.logged import Floats

FARTHEST_SD = 6.0
"""Standard deviations of the score that the grid reaches to either side of zero."""
LEAST = 1e-300
POINTS = 128
"""Number of points of the grid on which the score's density is computed."""


@dataclass(frozen=True, slots=True)
class Spending:
    """A trial's permitted chance of a false promotion, and how much of it each interim look may spend.

    Attributes:
        error: largest chance, over the whole trial, that a policy without an advantage is ever promoted.
        early: share of ``error`` that is spent by decision ``soon``; the rest is spent evenly up to ``longest``.
        soon: number of decisions by which a policy with a useful advantage should be promoted.
        longest: number of decisions after which a trial ends.
        power: exponent of the spending up to ``soon``; 1: evenly, 3: nearly all of it close to ``soon``.
        every: number of decisions between two looks, up to ``soon``.
        then_every: number of decisions between two looks, after ``soon``.
    """

    error: float = 0.015
    early: float = 0.9
    soon: int = 1_000
    longest: int = 4_000
    power: float = 1.5
    every: int = 50
    then_every: int = 250

    def spent(self, decisions: Floats) -> Floats:
        """Returns the chance of error that may be spent until each of these numbers of decisions, (looks,)."""
        first = np.minimum(decisions / self.soon, 1) ** self.power
        rest = np.clip((decisions - self.soon) / (self.longest - self.soon), 0, 1)
        return np.asarray(self.error * (self.early * first + (1 - self.early) * rest))

    def looks(self) -> list[int]:
        """Returns the numbers of decisions at which a trial is tested."""
        soon = range(self.every, self.soon, self.every)
        return [*soon, *range(self.soon, self.longest + 1, self.then_every)]


def bounds(information: Floats, spent: Floats) -> Floats:
    """Returns the number of standard errors above zero that a difference must reach at each look to pass, (looks,).

    Args:
        information: (looks,), 1 / squared standard error of the difference at each look, rising.
        spent: (looks,), chance of error that may be spent until each look, rising.
    """
    bounds_in_sd = []
    grid, density = np.zeros(1), np.ones(1)  # at no information the score is 0
    for step, still, now in zip(np.diff(information, prepend=0), np.diff(spent, prepend=0), information, strict=True):
        reach = np.sqrt(now) * FARTHEST_SD
        moved = np.linspace(-reach, reach, POINTS)
        mass = density * np.gradient(grid) if len(grid) > 1 else density
        if len(grid) > 1:
            mass[[0, -1]] /= 2
        # the score moves by a normal variable
        kernel = np.exp(-np.square(moved[:, None] - grid) / (2 * step)) / np.sqrt(2 * np.pi * step)
        after = kernel @ mass
        strips = (after[1:] + after[:-1]) / 2 * np.diff(moved)
        above = np.concatenate((np.cumsum(strips[::-1])[::-1], [0.0]))  # share of the density above each point
        inside = above > 0
        bound = np.interp(-np.log(still), -np.log(above[inside]), moved[inside])  # a normal's tail is nearly straight
        grid = np.linspace(-reach, bound, POINTS)
        density = np.exp(np.interp(grid, moved, np.log(np.maximum(after, LEAST))))
        bounds_in_sd.append(bound / np.sqrt(now))
    return np.array(bounds_in_sd)
