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
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from policy.agreement import SAME, Counts, Matrix, agreement
from policy.channels import LEAST_GAIN, TINY, alone, gain, idf, weight_of_pairs
from policy.evaluate import effective_sample
from policy.fit import FIRST_ORDER, Fit, fit_of
from policy.history import History
from policy.orders import ORDERS, START, Comparison, learned_weights, mixture
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
PRIOR = {"vote": 0.5, "mixture": 0.5, "outcomes": 0.5}
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
        unlike: similarity that the vectors of unlike runs have, see ``unlike_similarity``; None with too few runs.
    """

    questions: int
    tallies: Mapping[str, Tally]
    fit: Fit
    unlike: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Grades:
    """The grade of each order at each of a bank's n runs; the last row is that of the choice among the orders.

    Attributes:
        first: (orders + 1, n), 1 if a plan that worked stood first, 0 if not.
        ndcg: (orders + 1, n), nDCG@4 of the ranking.
        worth: (n,), weight of each run as a question; 0 if it is none.
        chosen: (n + 1,), index of the order that serves at each run, and after the last.
        charges: (orders + 1,), charges after the last run.
        weights: (4,), weights of the mixture after the last run.
    """

    first: Matrix
    ndcg: Matrix
    worth: NDArray[np.float32]
    chosen: NDArray[np.intp]
    charges: NDArray[np.float64]
    weights: NDArray[np.float32]


CHOICE = "choice"


def replay(history: History, first_order: str = FIRST_ORDER) -> Replay:
    """Returns the success of each order on a bank's runs, and the order that serves from now on."""
    comparison = comparison_of(history)
    found = grades(history, comparison, first_order)
    names = list(ORDERS)
    total, effective = max(float(found.worth.sum()), 1e-9), effective_sample(found.worth)
    shares = [float(each @ found.worth) / total for each in found.first]
    tallies = {
        name: Tally(
            shares[c],
            float(found.ndcg[c] @ found.worth) / total,
            float(found.charges[c]),
            *wilson(shares[c] * effective, effective),
        )
        for c, name in enumerate([*names, CHOICE])
    }
    fit = fit_of(history, names[found.chosen[-1]], found.weights, comparison.agreement)
    return Replay(int((found.worth > 0).sum()), tallies, fit, unlike_similarity(comparison))


def grades(history: History, comparison: Comparison, first_order: str = FIRST_ORDER) -> Grades:
    """Returns the grades of each order, and of the choice, at each of the runs that ``comparison_of`` compared."""
    weights = _weights(comparison, history)
    mixed = mixture(comparison, weights[:-1])
    places = [_places(order(comparison, mixed), comparison) for order in ORDERS.values()]
    first, ndcg, question = _graded(places, comparison, history.went_well)  # (orders, n), (orders, n), (n,)
    # in a mostly proven bank, an unproven run counts where a proven one could answer it: plants agree with each other
    trusted = history.trust >= (1 if history.mostly_proven else 0)
    answers = np.where(comparison.good & trusted, comparison.agreement, 0)
    answered = answers.max(axis=1, initial=0) >= REACHABLE
    worth = history.weight * (question & (trusted | answered))
    charges = np.array([*(0.0 if name == first_order else PRIOR.get(name, LEAST_PRIOR) for name in ORDERS), 0.0])
    chosen = np.zeros(len(worth) + 1, dtype=np.intp)
    for t, weight in enumerate(worth):
        chosen[t] = charges[:-1].argmin()
        now = 1 - (first[:, t] + ndcg[:, t]) / 2
        charges = charges * (1 - (1 - FADE) * weight) + np.array([*now, now[chosen[t]]]) * weight
    chosen[-1] = charges[:-1].argmin()
    first, ndcg = (np.vstack([each, each[chosen[:-1], np.arange(len(worth))]]) for each in (first, ndcg))
    return Grades(first, ndcg, worth, chosen, charges, weights[-1])


def unlike_similarity(comparison: Comparison) -> float | None:
    """Returns the mean similarity of the vectors of unlike runs, plus ERRORS standard errors.

    Unlike runs have few words in common and other plans: their similarity comes from the language of the profile's
    texts alone. None: there are fewer than LEAST_PAIRS pairs of unlike runs.
    """
    meaning = comparison.near["meaning"]
    known = np.diag(meaning) > 0
    unlike = (
        np.triu(known & known[:, None], k=1)
        & (comparison.near["words"] < UNLIKE_WORDS)
        & (comparison.agreement < REACHABLE)
    )
    similarities, runs = meaning[unlike], int(known.sum())
    if len(similarities) < LEAST_PAIRS:
        return None
    return float(similarities.mean() + ERRORS * similarities.std() / np.sqrt(runs))


def comparison_of(history: History) -> Comparison:
    """Returns a bank's numbers with its own runs as queries: query t is run t's task, and sees earlier runs only."""
    n = len(history.terms)
    before = np.tri(n, k=-1, dtype=np.bool_)
    alike = agreement(history.moves)
    newer, trust_of_newer = history.newer(alike)
    runs = np.arange(n, dtype=np.float32)[:, None]
    near = {
        **_word_channels(history, np.where(before, alike, 0), runs),
        "meaning": history.vectors @ history.vectors.T,
        "recent": -np.log1p(newer),
    }
    good = before & ~history.failed
    return Comparison(near, good, history.trust, alike, before & history.failed, trust_of_newer)


def _word_channels(history: History, alike: Matrix, runs: Matrix) -> dict[str, Matrix]:
    """Returns the cosines of words, (n, n) each, as ``policy.channels.cosine`` defines them, with few terms in memory.

    Args:
        history: the n runs.
        alike: (n, n), agreement of each run's plan with those of earlier runs, and 0 with others.
        runs: (n, 1), number of runs before each run.
    """
    voices = history.voices[:, None]
    pairs = alike * voices * voices.T  # the later run first
    count = weight_of_pairs(_before(voices), _before(voices**2))
    mean = _before(pairs.sum(axis=1, keepdims=True)) / np.maximum(count, TINY)
    cosines = {name: _Cosine.of(len(runs)) for name in ("words", "rare", "telling")}
    terms = Counts.of(history.terms, 1)
    for has, _ in terms.blocks():
        rare, own = idf(runs, _before(has)), has * voices
        heard, shared = _before(own), _before((pairs @ has) * has)
        gains = gain(shared, weight_of_pairs(heard, _before(own * voices)), heard, mean)
        for name, weight in {"words": np.ones_like(has), "rare": rare, "telling": rare * (gains + LEAST_GAIN)}.items():
            cosines[name].add(has, weight)
    rare = idf(runs, np.zeros_like(runs))  # of terms that one run has
    for name, weight in {"words": np.ones_like(rare), "rare": rare, "telling": rare * LEAST_GAIN}.items():
        cosines[name].add_alone(alone(terms), weight)
    return {name: each.value() for name, each in cosines.items()}


@dataclass(slots=True)
class _Cosine:
    """Sums over terms from which the cosine of each of n texts to each other follows, under each text's own weights.

    Attributes:
        shared: (n, n), sum of the squared weights of the terms that both texts have.
        asked: (n, 1), the same of all terms of the text.
        held: (n, n), the same of all terms of the other text.
    """

    shared: Matrix
    asked: Matrix
    held: Matrix

    @classmethod
    def of(cls, texts: int) -> Self:
        """Returns the sums before the first term."""
        square = np.zeros((texts, texts), dtype=np.float32)
        return cls(square, square[:, :1].copy(), square.copy())

    def add(self, has: Matrix, weight: Matrix) -> None:
        """Adds terms: which text has which, (n, t) of 0 and 1, and their weights for each text, (n, t)."""
        squared = weight * weight
        own = has * squared
        self.shared += own @ has.T
        self.asked += own.sum(axis=1, keepdims=True)
        self.held += squared @ has.T

    def add_alone(self, count: Matrix, weight: Matrix) -> None:
        """Adds terms that one text has: their number, (n,), and the weight of each for each text, (n, 1)."""
        squared = weight * weight
        self.asked += count[:, None] * squared
        self.held += squared * count

    def value(self) -> Matrix:
        """Returns the cosines, (n, n)."""
        return np.asarray(self.shared / np.sqrt(np.maximum(self.asked * self.held, TINY)), dtype=np.float32)


def _before(values: NDArray[np.floating[Any]]) -> Matrix:
    """Returns for each row the sum of all rows before it."""
    return np.asarray(np.cumsum(values, axis=0) - values, dtype=np.float32)


def _weights(comparison: Comparison, history: History) -> NDArray[np.float32]:
    """Returns the mixture's weights at each run and after the last, (n + 1, 4), each fitted on runs before it."""
    worth = history.weight * history.went_well
    n = len(worth)
    weights = np.tile(START, (n + 1, 1))
    for at in (*(size for size in FITS if size < n), n):
        if at >= FITS[0]:
            weights[at:] = learned_weights(comparison.first(at), worth[:at])
    return weights


def _places(scores: Matrix, comparison: Comparison) -> NDArray[np.intp]:
    """Returns the indices of the runs in each question's first places, (n, PLACES), one for each plan; -1: empty.

    Of runs with equal scores the newest comes first.
    """
    left = np.where(comparison.good, scores, -np.inf)
    places = np.full((len(scores), PLACES), -1)
    for place in range(PLACES if len(scores) else 0):
        is_best = left == left.max(axis=1, keepdims=True)
        best = np.where(is_best, comparison.near["recent"], -np.inf).argmax(axis=1)
        filled = np.isfinite(left[np.arange(len(left)), best])
        places[filled, place] = best[filled]
        left = np.where(comparison.agreement[best] >= SAME, -np.inf, left)
    return places


def _graded(
    places: Sequence[NDArray[np.intp]], comparison: Comparison, went_well: NDArray[np.bool_]
) -> tuple[Matrix, Matrix, NDArray[np.bool_]]:
    """Returns whether each order's first place is right, its nDCG, and which runs are questions with an answer."""
    reachable = np.where(comparison.good, comparison.agreement, 0).max(axis=1, initial=0)
    discount = 1 / np.log2(np.arange(PLACES) + 2)

    def agreements(slate: NDArray[np.intp]) -> Matrix:
        return np.where(slate >= 0, np.take_along_axis(comparison.agreement, np.maximum(slate, 0), axis=1), 0)

    ideal = np.maximum(agreements(_places(comparison.agreement, comparison)) @ discount, 1e-9)
    slates = [agreements(slate) for slate in places]
    first = np.array([slate[:, 0] >= SAME * reachable for slate in slates], dtype=np.float32)
    ndcg = np.array([slate @ discount / ideal for slate in slates], dtype=np.float32)
    return first, ndcg, went_well & (reachable >= REACHABLE)
