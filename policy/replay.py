"""Replay: chooses the order that would have put plans that worked first, had it ranked the bank's own runs.

Every run that went well is a question with its answer: its task, and the plan that worked. The questions are asked in
the order of time, each with the runs that the bank held before it. Each order is charged for its ranking: one half for
a first place that does not agree with the answer, one half for 1 - nDCG@4 (Järvelin & Kekäläinen 2002) of the
agreement. The order with the smallest sum of charges so far serves, with older charges fading and ties going to the
simpler order: the prequential choice (Dawid 1984), within the regret bounds of prediction with experts (Freund &
Schapire 1997). The charges of the choice itself, each time with what was known then, estimate honestly how well it
serves (progressive validation: Blum, Kalai & Langford 1999).

No exploration is needed: one run labels every run before it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policy.agreement import SAME, Matrix, agreement
from policy.channels import LEAST_GAIN, cosine, gain, idf, incidence
from policy.evaluate import effective_sample
from policy.fit import FIRST_ORDER, Fit, fit_of
from policy.history import History
from policy.orders import ORDERS, START, Field, fitted, mixture
from policy.rate import wilson

PLACES = 4
"""Number of first places whose agreement is charged."""
REACHABLE = 0.5
"""Least agreement that some earlier run's plan must have with a question's plan, for the question to have an answer."""
UNLIKE_WORDS = 0.4
"""Cosine of words at which two runs no longer count as unlike."""
ERRORS = 1.5
"""Standard errors that are added to the mean similarity of unlike runs, because few runs may underestimate it."""
LEAST_PAIRS = 6
"""Least number of pairs of unlike runs for an estimate of their similarity."""
FADE = 0.99
"""Factor by which each question reduces all earlier charges."""
PRIOR = {"vote": 0.5, "mixture": 0.5}
"""Charges that these orders begin with; other orders begin with LEAST_PRIOR, and a new bank's order with none."""
LEAST_PRIOR = 1.0
FITS = (10, 20, 40, 80, 160, 320)
"""Numbers of runs after which the mixture is fitted anew."""


@dataclass(frozen=True, slots=True)
class Tally:
    """The success of one order in a replay.

    Attributes:
        first: share of questions for which the order put a plan that worked first, 0 to 1.
        low, high: 95 % interval of that share, by the effective number of questions (Wilson 1927; Kish 1965); 0 and 1
            in a result that an earlier version stored.
        ndcg: mean nDCG@4 of the order's rankings, 0 to 1.
        charges: sum of the order's faded charges, with those that it began with.
    """

    first: float
    ndcg: float
    charges: float
    low: float = 0.0
    high: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """The result of a replay.

    Attributes:
        questions: number of runs that went well and whose plan some earlier run's plan agrees with (REACHABLE).
        tallies: success of each order by its name, and of the choice among them under the name CHOICE.
        fit: the bank's numbers for serving, with the name of the order that serves from now on.
        chosen: (n,), name of the order that would have served at each run.
        right: (n, orders + 1), 1 if the order put a plan that worked first, 0 if not, NaN for runs that are no
            question; the last column is the choice's.
        unlike: similarity that the vectors of unlike runs have, see ``unlike_similarity``; None with too few runs.
    """

    questions: int
    tallies: Mapping[str, Tally]
    fit: Fit
    chosen: Sequence[str]
    right: Matrix
    unlike: float | None


CHOICE = "choice"


def replay(history: History, first_order: str = FIRST_ORDER) -> Replay:
    """Returns the success of each order on a bank's runs, and the order that serves from now on."""
    field = field_of(history)
    weights = _weights(field, history.went_well)
    mixed = mixture(field, weights[:-1])
    places = [_places(order(field, mixed), field) for order in ORDERS.values()]
    first, ndcg, question = _graded(places, field, history.went_well)  # (orders, n), (orders, n), (n,)
    # a run that only calls itself a success counts where a trusted one could answer it: plants agree with each other
    trusted = history.trust >= history.trust.max(initial=0)
    answered = np.where(field.good & trusted, field.agreement, 0).max(axis=1, initial=0) >= REACHABLE
    worth = history.weight * (question & (trusted | answered))
    chosen, charges = _choices(1 - (first + ndcg) / 2, worth, first_order)
    first, ndcg = (np.vstack([each, each[chosen[:-1], np.arange(len(worth))]]) for each in (first, ndcg))
    names = list(ORDERS)
    total, effective = max(float(worth.sum()), 1e-9), effective_sample(worth)
    shares = [float(each @ worth) / total for each in first]
    tallies = {
        name: Tally(
            shares[c],
            float(ndcg[c] @ worth) / total,
            float(charges[min(c, len(names) - 1)]),
            *wilson(shares[c] * effective, effective),
        )
        for c, name in enumerate([*names, CHOICE])
    }
    right = np.where(question, first, np.nan).T
    fit = fit_of(history, names[chosen[-1]], weights[-1], field.agreement)
    serving = [names[c] for c in chosen[:-1]]
    return Replay(int((worth > 0).sum()), tallies, fit, serving, right, unlike_similarity(field))


def unlike_similarity(field: Field) -> float | None:
    """Returns the mean similarity of the vectors of unlike runs, plus ERRORS standard errors.

    Unlike runs have few words in common and other plans: their similarity comes from the language of the profile's
    texts alone. None: there are fewer than LEAST_PAIRS pairs of unlike runs.
    """
    meaning = field.near["meaning"]
    known = np.diag(meaning) > 0
    unlike = np.triu(known & known[:, None], k=1) & (field.near["words"] < UNLIKE_WORDS) & (field.agreement < REACHABLE)
    similarities, runs = meaning[unlike], int(known.sum())
    if len(similarities) < LEAST_PAIRS:
        return None
    return float(similarities.mean() + ERRORS * similarities.std() / np.sqrt(runs))


def field_of(history: History) -> Field:
    """Returns a bank's numbers with its own runs as queries: query t is run t's task, and sees earlier runs only."""
    n = len(history.terms)
    before = np.tri(n, k=-1, dtype=np.bool_)
    has, _ = incidence(history.terms)
    well = history.went_well.astype(np.float32)
    alike = agreement(history.moves)
    having, having_well = _before(has), _before(has * well[:, None])
    pairs = np.where(before, alike, 0) * well[:, None] * well  # of runs that went well, the later one first
    shared = _before((pairs @ has) * has)
    count = _before(well[:, None])
    mean = _before(pairs.sum(axis=1, keepdims=True)) / np.maximum(count * (count - 1) / 2, 1)
    runs = np.arange(n, dtype=np.float32)[:, None]
    rare = idf(runs, having)
    near = {
        "words": cosine(has, has, np.ones((1, has.shape[1]), np.float32)),
        "rare": cosine(has, has, rare),
        "telling": cosine(has, has, rare * (gain(shared, having_well, mean) + LEAST_GAIN)),
        "meaning": history.vectors @ history.vectors.T,
        "recent": -np.log1p(np.maximum(runs - 1 - runs.T, 0)),
    }
    good = before & history.went_well
    return Field(near, good, history.trust, alike)


def _before(values: NDArray[np.floating[Any]]) -> Matrix:
    """Returns for each row the sum of all rows before it."""
    return np.asarray(np.cumsum(values, axis=0) - values, dtype=np.float32)


def _weights(field: Field, went_well: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Returns the mixture's weights at each run and after the last, (n + 1, 4), each fitted on runs before it."""
    n = len(went_well)
    weights = np.tile(START, (n + 1, 1))
    for at in (*(size for size in FITS if size < n), n):
        if at >= FITS[0]:
            near = {name: each[:at, :at] for name, each in field.near.items()}
            first = Field(near, field.good[:at, :at], field.trust[:at], field.agreement[:at, :at])
            weights[at:] = fitted(first, went_well[:at])
    return weights


def _places(scores: Matrix, field: Field) -> NDArray[np.intp]:
    """Returns the indices of the runs in each question's first places, (n, PLACES), one for each plan; -1: empty."""
    left = np.where(field.good, scores, -np.inf)
    places = np.full((len(scores), PLACES), -1)
    for place in range(PLACES if len(scores) else 0):
        best = left.shape[1] - 1 - left[:, ::-1].argmax(axis=1)
        filled = np.isfinite(left[np.arange(len(left)), best])
        places[filled, place] = best[filled]
        left = np.where(field.agreement[best] >= SAME, -np.inf, left)
    return places


def _graded(
    places: Sequence[NDArray[np.intp]], field: Field, went_well: NDArray[np.bool_]
) -> tuple[Matrix, Matrix, NDArray[np.bool_]]:
    """Returns whether each order's first place is right, its nDCG, and which runs are questions with an answer."""
    reachable = np.where(field.good, field.agreement, 0).max(axis=1, initial=0)
    discount = 1 / np.log2(np.arange(PLACES) + 2)

    def agreements(slate: NDArray[np.intp]) -> Matrix:
        return np.where(slate >= 0, np.take_along_axis(field.agreement, np.maximum(slate, 0), axis=1), 0)

    ideal = np.maximum(agreements(_places(field.agreement, field)) @ discount, 1e-9)
    slates = [agreements(slate) for slate in places]
    first = np.array([slate[:, 0] >= SAME * reachable for slate in slates], dtype=np.float32)
    ndcg = np.array([slate @ discount / ideal for slate in slates], dtype=np.float32)
    return first, ndcg, went_well & (reachable >= REACHABLE)


def _choices(
    charge: NDArray[np.floating[Any]], worth: NDArray[np.float32], first_order: str
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Returns the order that serves at each run and after the last, (n + 1,), and the orders' charges at the end."""
    charges = np.array([0.0 if name == first_order else PRIOR.get(name, LEAST_PRIOR) for name in ORDERS])
    chosen = np.zeros(len(worth) + 1, dtype=np.intp)
    for t, weight in enumerate(worth):
        chosen[t] = charges.argmin()
        charges = charges * (1 - (1 - FADE) * weight) + charge[:, t] * weight
    chosen[-1] = charges.argmin()
    return chosen, charges
