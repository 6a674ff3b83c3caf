"""Confidence interval of a rate that was observed in a number of trials.

Source: Wilson 1927, "Probable inference, the law of succession, and statistical inference".
"""

from math import sqrt
from statistics import NormalDist

LEVEL = 0.95


def wilson(hits: float, trials: float) -> tuple[float, float]:
    """Returns Wilson's score interval of the rate of independent trials; (0, 1) if there are no trials.

    Both numbers may be effective numbers of weighted trials.
    """
    if not trials:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    rate, spread = hits / trials, z * z / trials
    middle = (rate + spread / 2) / (1 + spread)
    half = z * sqrt(rate * (1 - rate) / trials + spread / (4 * trials)) / (1 + spread)
    return max(0.0, min(middle - half, rate)), min(1.0, max(middle + half, rate))  # rounding excludes no end
