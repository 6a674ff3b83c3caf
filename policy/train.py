"""Training: many profiles' heads at once, as one tensor program; the only module that imports torch.

The outcome of a slate is one draw with log odds query(s) + sharpness * sum over places of credit * (prior + case part):
an additive slate model (Swaminathan et al. 2017), fitted by binary cross-entropy with clipped inverse propensities.
Each member of an ensemble sees another bootstrap of the queries (Osband et al. 2016), and is drawn towards zero, which
is the untrained default, by ridge penalties: the fewer decisions, the less it moves.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from policy.examples import Examples, split
from policy.network import NEVER, Head, standardised

LEAST_SPREAD = 1e-6
TINY = 1e-12
TRAINED = ("linear", "query_linear", "query_bias", "log_sharpness", "null")
"""Weights that move; centre and scale only describe the inputs."""
STAY = float("inf")
"""The ridge of a case part that stays where it began; only how hard queries are is still learned."""
LEAST_GAIN_ERRORS = 2.5
"""Standard errors by which a ridge must beat staying on held-out decisions before the case part moves."""
RIDGES = (30.0, 100.0, 300.0, 1_000.0, STAY)
"""Ridges that a nightly training chooses from."""
SHARPNESS_RIDGE = 5.0
"""Pull of the sharpness towards 1, in decisions."""
NULL_RIDGE = 5.0
"""Pull of the empty slate's log odds towards where they begin, in decisions."""
FEWEST_EMPTY = 10
"""Least number of empty slates in a log that gives one a value."""
EMPTY_SLATE_MARGIN = 1.0
"""Log odds of an empty slate below the log's worst one, so that a few outcomes cannot make it win everywhere."""
MEAN_DECAY, SQUARE_DECAY, STABILITY = 0.9, 0.999, 1e-8
"""Adam's usual constants."""
MANY = 16
"""Least number of profiles in a batch that makes several threads worth it; with fewer, threads wait for one another
more than they work, and for seconds where other processes want the processors."""
HELD_OUT = 0.25
"""Share of a profile's decisions, the latest queries, on which its ridge is chosen."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Settings of training; the same plan, seed and examples give the same bytes.

    Attributes:
        steps, rate: of Adam, on all examples at once.
        ridge: pull of the case part towards where it began, in decisions: so many decisions weigh as much.
        ridges: choices for each profile's own ridge, on its later decisions (``chosen_ridges``); empty: ``ridge``.
        query_ridge: the same for the query part.
        batch: profiles trained at once.
        device: "cpu" or "cuda".
    """

    steps: int = 200
    rate: float = 0.03
    ridge: float = 100.0
    ridges: tuple[float, ...] = ()
    query_ridge: float = 30.0
    batch: int = 64
    device: str = "cpu"


def train(
    profiles: Sequence[Examples],
    plan: Plan,
    seeds: Sequence[int],
    start: Head,
    progress: Callable[[int], object] = lambda _count: None,
) -> list[Head]:
    """Returns a head for each profile, trained from ``start``.

    A profile's head depends on its own examples, its seed, the plan and ``start`` alone, whoever else is in the
    batch. ``progress`` is called with how many more profiles are done. Profiles without examples keep ``start``.
    """
    heads: list[Head] = []
    for first in range(0, len(profiles), plan.batch):
        part, drawn = profiles[first : first + plan.batch], seeds[first : first + plan.batch]
        pull = chosen_ridges(part, plan, drawn, start) if plan.ridges else [plan.ridge] * len(part)
        heads += _train_together(part, replace(plan, ridges=tuple(pull)), drawn, start)
        progress(len(part))
    return heads


def chosen_ridges(profiles: Sequence[Examples], plan: Plan, seeds: Sequence[int], start: Head) -> list[float]:
    """Returns each profile's ridge: the largest of the plan's that predicts its later decisions about as well as any.

    About as well: within one standard error, clustered by query, of the least loss on the held-out decisions. Where
    the plan allows to STAY, only what is better than that by LEAST_GAIN_ERRORS standard errors comes into question:
    outcomes of whole slates say little of single cases, and to follow their noise costs more than learning gains. A log
    too small to hold anything out gets the largest ridge.

    Source: the one-standard-error rule of Breiman et al. 1984, section 3.4.3.
    """
    held_out = [split(examples.group, HELD_OUT) for examples in profiles]
    early = [examples.take(~later) for examples, later in zip(profiles, held_out, strict=True)]
    tries = [(ridge, *each) for ridge in sorted(plan.ridges) for each in zip(early, seeds, strict=True)]
    heads: list[Head] = []
    for first in range(0, len(tries), plan.batch):
        ridges, part, drawn = zip(*tries[first : first + plan.batch], strict=True)
        heads += _train_together(part, replace(plan, ridges=ridges), drawn, start)
    losses = [
        [
            _losses(head, examples.take(later))
            for head, examples, later in zip(heads[first:], profiles, held_out, strict=False)
        ]
        for first in range(0, len(heads), len(profiles))
    ]
    return [
        _one_standard_error_rule(
            np.stack([loss[p] for loss in losses]), examples.group[held_out[p]], sorted(plan.ridges)
        )
        for p, examples in enumerate(profiles)
    ]


def _losses(head: Head, examples: Examples) -> np.ndarray:
    """Returns the weighted cross-entropy of each decision, (n,), under the mean of the members' log odds."""
    odds = head.log_odds(examples.query, _slates(head, examples), examples.empty).mean(axis=0)
    return np.asarray((np.logaddexp(0, odds) - examples.reward * odds) * examples.weight)


def _slates(head: Head, examples: Examples) -> np.ndarray:
    """Returns prior and case part of each slate by each member, (M, n), by the credit of its places."""
    prior = (examples.credit * examples.prior).sum(axis=1)
    return np.asarray(prior + head.credited(examples.inputs, examples.credit))


def _one_standard_error_rule(losses: np.ndarray, group: np.ndarray, ridges: Sequence[float]) -> float:
    """Returns the ridge, rising, that the losses (ridges, n) on held-out decisions speak for: see ``chosen_ridges``."""
    if not len(group):
        return ridges[-1]
    _, place = np.unique(group, return_inverse=True)

    def better(one: int, other: int) -> float:
        """Returns the standard errors, clustered by query, by which the one loses less."""
        gained = losses[other] - losses[one]
        error = np.sqrt(np.square(np.bincount(place, gained - gained.mean())).sum()) / len(group)
        return float(gained.mean() / max(error, TINY))

    moving = [number for number, ridge in enumerate(ridges) if ridge != STAY]
    if STAY in ridges:
        moving = [number for number in moving if better(number, len(ridges) - 1) > LEAST_GAIN_ERRORS]
    if not moving:
        return STAY
    best = min(moving, key=lambda number: losses[number].mean())
    return ridges[max(number for number in moving if better(best, number) <= 1)]


def _train_together(profiles: Sequence[Examples], plan: Plan, seeds: Sequence[int], start: Head) -> list[Head]:
    """Trains P profiles, whose ridges are the plan's, with M members each as tensors that begin (P, M, ...).

    Adam (Kingma & Ba 2015) to the bit as torch.optim computes it, whose import takes seconds: it brings a compiler.
    """
    begun = [_begin(examples, start) for examples in profiles]
    fixed = {
        name: torch.tensor(np.stack([head.arrays()[name] for head in begun]), device=plan.device)
        for name in begun[0].arrays()
    }
    moved = {name: fixed[name].clone().requires_grad_() for name in TRAINED}
    batch = _batch(profiles, begun, plan, seeds)
    stays = torch.tensor(plan.ridges, device=plan.device).isinf()
    means, squares = ([torch.zeros_like(each) for each in moved.values()] for _ in range(2))
    with _threads_for(len(profiles)):
        for step in range(1, plan.steps + 1):
            loss = _data_loss(moved, batch) + _penalty(moved, fixed, batch.size, plan)
            gradients = torch.autograd.grad(loss.sum(), list(moved.values()))
            with torch.no_grad():
                for each, gradient, mean, square in zip(moved.values(), gradients, means, squares, strict=True):
                    mean.lerp_(gradient, 1 - MEAN_DECAY)
                    square.mul_(SQUARE_DECAY).addcmul_(gradient, gradient, value=1 - SQUARE_DECAY)
                    scale = (square.sqrt() / (1 - SQUARE_DECAY**step) ** 0.5).add_(STABILITY)
                    each.addcdiv_(mean, scale, value=-plan.rate / (1 - MEAN_DECAY**step))
                moved["linear"][stays] = fixed["linear"][stays]
    return [
        Head(**{**head.arrays(), **{name: moved[name][p].detach().cpu().numpy() for name in TRAINED}})
        for p, head in enumerate(begun)
    ]


@contextmanager
def _threads_for(profiles: int) -> Iterator[None]:
    """Computes a batch of so few profiles by one thread."""
    usual = torch.get_num_threads()
    torch.set_num_threads(usual if profiles >= MANY else 1)
    try:
        yield
    finally:
        torch.set_num_threads(usual)


@dataclass(frozen=True, slots=True, eq=False)
class _Batch:
    """P profiles padded to N decisions; a padded decision weighs nothing."""

    shared: Tensor  # (P, N, D): credit-weighted sum of the standardised inputs
    prior: Tensor  # (P, N): credit-weighted
    query: Tensor  # (P, N, G), standardised
    reward: Tensor  # (P, N)
    empty: Tensor  # (P, N), 1 or 0
    weight: Tensor  # (P, M, N): propensity weight times bootstrap count
    size: Tensor  # (P,): decisions


@dataclass(frozen=True, slots=True)
class _Units:
    """Centre and scale that standardise inputs."""

    centre: np.ndarray
    scale: np.ndarray


def _standard(rows: np.ndarray, weight: np.ndarray) -> _Units | None:
    """Returns the weighted mean and standard deviation of each input; a constant input gets the deviation 1."""
    if not weight.any():
        return None
    weight = weight.astype(np.float64)  # (rows,)
    centre = np.average(rows, axis=0, weights=weight)
    scale = np.sqrt(np.average(np.square(rows - centre), axis=0, weights=weight))
    return _Units(centre.astype(np.float32), np.where(scale > LEAST_SPREAD, scale, 1).astype(np.float32))


def _begin(examples: Examples, start: Head) -> Head:
    """Returns the head before training: ``start``, in units of these inputs."""
    row, place = np.nonzero(examples.credit)
    case = _standard(examples.inputs[row, place], examples.weight[row])
    scaled = _rescaled(start, case, _standard(examples.query, examples.weight))
    if examples.empty.sum() >= FEWEST_EMPTY:
        # below the least log odds that a slate of the log has by each member, (M,); NEVER where all were empty
        filled = examples.take(~examples.empty)
        worst = scaled.shown(_slates(scaled, filled)).min(axis=1, initial=np.inf if len(filled) else NEVER)
        scaled = replace(scaled, null=np.asarray(worst) - np.float32(EMPTY_SLATE_MARGIN))
    return scaled


def _rescaled(head: Head, case: _Units | None, query: _Units | None) -> Head:
    """Returns the head that computes the same from inputs in other units, up to a constant of the query."""
    if case is not None:
        ratio = (case.scale / head.scale).astype(np.float32)
        head = replace(head, centre=case.centre, scale=case.scale, linear=head.linear * ratio)
    if query is not None:
        shift = head.query_linear @ ((query.centre - head.query_centre) / head.query_scale)
        head = replace(
            head,
            query_centre=query.centre,
            query_scale=query.scale,
            query_linear=head.query_linear * (query.scale / head.query_scale).astype(np.float32),
            query_bias=head.query_bias + shift,
        )
    return head


def _batch(profiles: Sequence[Examples], begun: Sequence[Head], plan: Plan, seeds: Sequence[int]) -> _Batch:
    longest = max(1, *(len(examples) for examples in profiles)) if profiles else 1

    def padded(rows: Sequence[np.ndarray]) -> Tensor:
        full = np.zeros((len(rows), longest, *rows[0].shape[1:]), np.float32)
        for place, row in enumerate(rows):
            full[place, : len(row)] = row
        return torch.tensor(full, device=plan.device)

    members = len(begun[0].query_bias)
    drawn = [_bootstrap(examples, members, seed) for examples, seed in zip(profiles, seeds, strict=True)]
    inputs = [standardised(e.inputs, h.centre, h.scale) for e, h in zip(profiles, begun, strict=True)]
    return _Batch(
        shared=padded([np.einsum("nk,nkd->nd", e.credit, rows) for e, rows in zip(profiles, inputs, strict=True)]),
        prior=padded([(e.credit * e.prior).sum(axis=1) for e in profiles]),
        query=padded(
            [standardised(e.query, h.query_centre, h.query_scale) for e, h in zip(profiles, begun, strict=True)]
        ),
        reward=padded([e.reward for e in profiles]),
        empty=padded([e.empty & h.values_empty for e, h in zip(profiles, begun, strict=True)]),
        weight=padded([(e.weight[:, None] * draw).astype(np.float32) for e, draw in zip(profiles, drawn, strict=True)])
        .transpose(1, 2)
        .contiguous(),
        size=torch.tensor([max(len(e), 1) for e in profiles], dtype=torch.float32, device=plan.device),
    )


def _bootstrap(examples: Examples, members: int, seed: int) -> np.ndarray:
    """Returns the weight of each decision for each member, (n, M): the same for all of one query, mean 1."""
    if not len(examples):
        return np.zeros((0, members))
    _, place = np.unique(examples.group, return_inverse=True)
    counts = np.random.default_rng([seed, 2]).exponential(size=(place.max() + 1, members))  # Rubin 1981
    drawn = counts[place]
    return np.asarray(drawn / drawn.mean(axis=0))


def _data_loss(moved: dict[str, Tensor], batch: _Batch) -> Tensor:
    """Returns the mean weighted cross-entropy of each profile and member, (P, M)."""
    hardness = torch.einsum("png,pmg->pmn", batch.query, moved["query_linear"]) + moved["query_bias"][:, :, None]
    slates = batch.prior[:, None] + torch.einsum("pnd,pmd->pmn", batch.shared, moved["linear"])
    shown = moved["log_sharpness"].exp()[:, :, None] * slates
    odds = hardness + torch.where(batch.empty[:, None] > 0, moved["null"][:, :, None], shown)
    entropy = binary_cross_entropy_with_logits(odds, batch.reward[:, None].expand_as(odds), reduction="none")
    return (entropy * batch.weight).sum(dim=2) / batch.size[:, None]


def _penalty(moved: dict[str, Tensor], fixed: dict[str, Tensor], size: Tensor, plan: Plan) -> Tensor:
    """Returns the ridge penalty of each profile and member, (P, M), in units of the mean loss."""
    total = torch.zeros(len(size), moved["query_bias"].shape[1], device=size.device)
    ridge = torch.tensor(plan.ridges, device=size.device)[:, None]
    ridge = torch.where(ridge.isinf(), 0, ridge)  # what stays is put back anyway
    shown = ridge * moved["log_sharpness"].exp().square()  # what counts is how far the outcomes' log odds move
    strengths: dict[str, Tensor | float] = {
        "linear": shown,
        "query_linear": plan.query_ridge,
        "log_sharpness": SHARPNESS_RIDGE,
        "null": NULL_RIDGE,
    }
    for name, strength in strengths.items():
        gap = (moved[name] - fixed[name]).square().reshape(*total.shape, -1).sum(dim=2)
        total = total + strength * gap / (2 * size[:, None])
    return total
