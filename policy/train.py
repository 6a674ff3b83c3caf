"""Trains a profile's head, the network that predicts rewards, on its logged decisions, in numpy.

The outcome of a slate is one draw with log odds query(s) + sharpness * sum over places of credit * (prior + case part):
an additive slate model (Swaminathan et al. 2017), fitted by binary cross-entropy with clipped inverse propensities.
Each member of the ensemble sees another bootstrap sample of the queries (Osband et al. 2016). Ridge penalties draw it
towards zero, which is the untrained default: the fewer the decisions, the less a member moves.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from policy.examples import Examples, split
from policy.held_out import log_losses
from policy.network import Head, standardised

Numbers = NDArray[np.float64]

TRAINED = ("linear", "query_linear", "query_bias", "log_sharpness")
"""Weights of a head that training moves; in an untrained head they are 0."""
LEAST_SPREAD = 1e-6
TINY = 1e-12
STAY = float("inf")
"""Ridge with which the case part does not change; only the query part (how hard queries are) is still learned."""
LEAST_GAIN_ERRORS = 2.5
"""Standard errors by which a ridge must beat STAY on held-out decisions before the case part changes."""
RIDGES = (30.0, 100.0, 300.0, 1_000.0, STAY)
"""Penalties that draw the case part to its start, as numbers of decisions that weigh as much; each profile's later
decisions choose one of them."""
STEPS, RATE = 200, 0.03
"""Number and size of Adam's steps, each on all examples at once."""
QUERY_RIDGE = 30.0
"""Ridge penalty that draws the query part to its start, as a number of decisions."""
SHARPNESS_RIDGE = 5.0
"""Ridge penalty that draws the sharpness towards 1, as a number of decisions."""
MEAN_DECAY, SQUARE_DECAY, STABILITY = 0.9, 0.999, 1e-8
"""Adam's usual constants."""
HELD_OUT = 0.25
"""Share of a profile's decisions, the latest queries, on which its ridge is chosen."""


def train(
    profiles: Sequence[Examples],
    seeds: Sequence[int],
    start: Head,
    ridges: Sequence[float] = RIDGES,
    progress: Callable[[int], object] = lambda _count: None,
) -> list[Head]:
    """Returns a head for each profile, trained from ``start``, an untrained head (``policy.network.untrained``).

    A profile's head depends only on its own examples, its seed, ``start`` and the ridges: equal ones give equal bytes.
    Without examples it is ``start``. ``progress`` is called after each profile, with the number of profiles done since
    its last call.
    """
    heads: list[Head] = []
    for examples, seed in zip(profiles, seeds, strict=True):
        heads += _trained(examples, seed, start, [chosen_ridge(examples, seed, start, ridges)])
        progress(1)
    return heads


def chosen_ridge(examples: Examples, seed: int, start: Head, ridges: Sequence[float]) -> float:
    """Returns the largest of the ridges that predicts the profile's later decisions about as well as the best.

    "About as well" means within one standard error, clustered by query, of the least loss on the held-out decisions. If
    STAY is one of the ridges, another ridge must beat it by LEAST_GAIN_ERRORS standard errors: outcomes of whole slates
    say little about single cases, and following their noise costs more than learning gains. A log too small to hold
    anything out gets the largest ridge.

    Source: the one-standard-error rule of Breiman et al. 1984, section 3.4.3.
    """
    if len(ridges) == 1:
        return ridges[0]
    later, ridges = split(examples.group, HELD_OUT), sorted(ridges)
    held_out = examples.take(later)
    heads = _trained(examples.take(~later), seed, start, ridges)
    losses = np.stack([log_losses(held_out, head, 1.0) for head in heads]) * held_out.weight
    if not len(held_out):
        return ridges[-1]
    _, place = np.unique(held_out.group, return_inverse=True)

    def better(one: int, other: int) -> float:
        """Returns the number of standard errors, clustered by query, by which the loss of ridge ``one`` is less."""
        gained = losses[other] - losses[one]
        error = np.sqrt(np.square(np.bincount(place, gained - gained.mean())).sum()) / len(held_out)
        return float(gained.mean() / max(error, TINY))

    moving = [number for number, ridge in enumerate(ridges) if ridge != STAY]
    if STAY in ridges:
        moving = [number for number in moving if better(number, len(ridges) - 1) > LEAST_GAIN_ERRORS]
    if not moving:
        return STAY
    best = min(moving, key=lambda number: losses[number].mean())
    return ridges[max(number for number in moving if better(best, number) <= 1)]


def _trained(examples: Examples, seed: int, start: Head, ridges: Sequence[float]) -> list[Head]:
    """Returns a head for each ridge, its members trained by Adam (Kingma & Ba 2015) from ``start``.

    The inputs are standardised in the examples' own units. The trained weights have the shape (ridges, members, ...).
    """
    row, place = np.nonzero(examples.credit)
    centre, scale = _units(examples.inputs[row, place], examples.weight[row])
    query_centre, query_scale = _units(examples.query, examples.weight)
    begun = replace(start, centre=centre, scale=scale, query_centre=query_centre, query_scale=query_scale)
    loss = _Loss.of(examples, begun, seed, ridges)
    moved = {name: np.zeros((len(ridges), *getattr(begun, name).shape)) for name in TRAINED}
    means, squares = ({name: np.zeros_like(array) for name, array in moved.items()} for _ in range(2))
    for step in range(1, STEPS + 1):
        for name, gradient in loss.gradients(moved).items():
            means[name] += (1 - MEAN_DECAY) * (gradient - means[name])
            squares[name] += (1 - SQUARE_DECAY) * (gradient * gradient - squares[name])
            size = np.sqrt(squares[name] / (1 - SQUARE_DECAY**step)) + STABILITY
            moved[name] -= RATE / (1 - MEAN_DECAY**step) * means[name] / size
    return [
        replace(begun, **{name: array[place].astype(np.float32) for name, array in moved.items()})
        for place in range(len(ridges))
    ]


@dataclass(frozen=True, slots=True, eq=False)
class _Loss:
    """Cross-entropy and ridge penalties of N decisions for R ridges and M members, in units of the mean loss.

    Attributes:
        shared: (N, D), credit-weighted sum of the standardised inputs.
        prior: (N,), credit-weighted sum of the default's log odds.
        query: (N, G), standardised inputs of the query part.
        reward: (N,), reward of each decision.
        weight: (M, N), propensity weight times bootstrap count, divided by the number of decisions.
        ridges: (R, 1), each ridge divided by the number of decisions; 0 if the case part stays.
        moves: (R, 1, 1), 0 if the case part stays, else 1.
        pulls: ridges of the other weights, divided by the number of decisions, by name.
    """

    shared: Numbers
    prior: Numbers
    query: Numbers
    reward: Numbers
    weight: Numbers
    ridges: Numbers
    moves: Numbers
    pulls: dict[str, float]

    @classmethod
    def of(cls, examples: Examples, begun: Head, seed: int, ridges: Sequence[float]) -> "_Loss":
        count = max(len(examples), 1)
        inputs = standardised(examples.inputs, begun.centre, begun.scale).astype(np.float64)
        ridge = np.array(ridges, dtype=np.float64)[:, None]
        stays = np.isinf(ridge)
        return cls(
            shared=np.einsum("nk,nkd->nd", examples.credit, inputs),
            prior=(examples.credit * examples.prior).sum(axis=1, dtype=np.float64),
            query=standardised(examples.query, begun.query_centre, begun.query_scale).astype(np.float64),
            reward=examples.reward.astype(np.float64),
            weight=(examples.weight[:, None] * _bootstrap(examples, len(begun.linear), seed)).T / count,
            ridges=np.where(stays, 0, ridge) / count,
            moves=np.where(stays, 0.0, 1.0)[:, :, None],
            pulls={
                "query_linear": QUERY_RIDGE / count,
                "query_bias": 0.0,
                "log_sharpness": SHARPNESS_RIDGE / count,
            },
        )

    def gradients(self, moved: dict[str, Numbers]) -> dict[str, Numbers]:
        """Returns the gradient of the loss with respect to each trained weight, by its name and in its shape."""
        sharpness = np.exp(moved["log_sharpness"])
        slates = moved["linear"] @ self.shared.T + self.prior  # (R, M, N)
        odds = moved["query_linear"] @ self.query.T + moved["query_bias"][..., None] + sharpness[..., None] * slates
        error = (0.5 + 0.5 * np.tanh(0.5 * odds) - self.reward) * self.weight  # a sigmoid that never overflows
        # what counts is how far the outcomes' log odds move, so the pull on the case part grows with the sharpness
        pull = self.ridges * sharpness**2
        of_case = sharpness[..., None] * (error @ self.shared) + pull[..., None] * moved["linear"]
        of_sharpness = sharpness * (error * slates).sum(axis=-1) + pull * (moved["linear"] ** 2).sum(axis=-1)
        gradients = {
            "query_linear": error @ self.query,
            "query_bias": error.sum(axis=-1),
            "log_sharpness": of_sharpness,
        }
        pulled = {name: gradient + self.pulls[name] * moved[name] for name, gradient in gradients.items()}
        return {"linear": self.moves * of_case, **pulled}


def _units(rows: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the weighted mean and deviation of each input: 0 and 1 without rows; a constant's deviation is 1.

    Args:
        rows: (n, D), the inputs.
        weight: (n,), weight of each row.
    """
    if not weight.any():
        return np.zeros(rows.shape[-1], np.float32), np.ones(rows.shape[-1], np.float32)
    weight = weight.astype(np.float64)
    centre = np.average(rows, axis=0, weights=weight)
    scale = np.sqrt(np.average(np.square(rows - centre), axis=0, weights=weight))
    return centre.astype(np.float32), np.where(scale > LEAST_SPREAD, scale, 1).astype(np.float32)


def _bootstrap(examples: Examples, members: int, seed: int) -> np.ndarray:
    """Returns the weight of each decision for each member, (n, M): the same for all of one query, mean 1."""
    if not len(examples):
        return np.zeros((0, members))
    _, place = np.unique(examples.group, return_inverse=True)
    counts = np.random.default_rng([seed, 2]).exponential(size=(place.max() + 1, members))  # Rubin 1981
    drawn = counts[place]
    return np.asarray(drawn / drawn.mean(axis=0))
