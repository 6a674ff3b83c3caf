"""What the choice of the default's weights is worth on a domain that had no part in it: whole domains are left out.

The weights of ``policy.default.WEIGHTS`` were chosen on the domains that measure them, so their own rows are in-sample.
Here they are chosen again by the same rule on all domains but one, and measured on that one. The constants of
``policy.evidence`` are older, and were found on retail and airline: of those nothing here is out of sample.
"""

from collections.abc import Iterator, Mapping
from itertools import product

import numpy as np

from bench.learning.scores import Scores
from bench.learning.worth import Reading
from policy.default import Weights

GRID = tuple(
    Weights(rrf=rrf, returned=returned) for rrf, returned in product((0.1, 0.25), (0.0, 1.0, 2.0, 4.0, 6.0, 8.0))
)

Cell = tuple[str, str, Reading]
"""Domain, mode, and reading; its scores have an arm for each weights of GRID, by ``str``."""


def choices(reached: Mapping[Cell, Scores], rule: str) -> Iterator[tuple[str, Weights]]:
    """Yields each domain with the weights that are chosen on the others; ``rule`` is the fixed rule to stay above."""
    domains = sorted({domain for domain, _, _ in reached})
    for left_out in domains:
        others = [domain for domain in domains if domain != left_out]
        yield left_out, max(GRID, key=lambda weights: np.mean([_gain(reached, d, weights, rule) for d in others]))


def _gain(reached: Mapping[Cell, Scores], domain: str, weights: Weights, rule: str) -> float:
    """Returns how far a domain's plans agree above the rule, less what the same task, solved, falls below it."""
    agreed, fallen = list[float](), list[float]()
    for (name, _, reading), scores in reached.items():
        change = float((scores.column(str(weights)) - scores.column(rule)).mean())
        if name == domain and reading is Reading.AGREEMENT:
            agreed.append(change)
        elif name == domain:
            fallen.append(min(change, 0.0))
    return float(np.mean(agreed)) + (float(np.mean(fallen)) if fallen else 0.0)
