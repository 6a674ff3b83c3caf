"""A made-up world with a known truth: queries that come back, two policies that often agree, and a canary's log."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policy.gate import Contest
from policy.logged import Floats, Ints, Logged, Target

QUERIES, CANDIDATES, PLACES = 600, 8, 4
SEGMENTS = 5
EARLIER = 1000
"""Decisions of the default before the canary, on which the candidate was trained."""
DEFAULT_SLATE = np.arange(PLACES)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A truth, and the way it is logged.

    Attributes:
        uplift: value(candidate) - value(default), in reward per decision.
        decisions: logged with the canary, both arms together.
        share: share of decisions that the canary serves.
        differ: share of decisions on which the policies' slates differ.
        sticky: the arm is drawn once per query, not once per decision.
        permuted: rewards are shuffled over the decisions, before and under the canary: nothing is left to learn.
        claimed: the uplift that the candidate promises; None for the true one.
        explore: share of either arm's decisions with one place explored.
    """

    uplift: float
    decisions: int = 1000
    share: float = 0.25
    differ: float = 0.65
    sticky: bool = False
    permuted: bool = False
    claimed: float | None = None
    explore: float = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """Queries with their popularity, difficulty (log-odds), and the effects of their candidates (log-odds)."""

    popularity: Floats  # (queries,), sums to 1
    difficulty: Floats  # (queries,)
    effects: Floats  # (queries, CANDIDATES)
    slates: Ints  # (queries, PLACES), the candidate policy's

    def reward(self, query: Ints, slate: Ints) -> Floats:
        """Returns the chance of success, (n,), of a slate (n, PLACES) for a query (n,)."""
        helped = np.take_along_axis(self.effects[query], slate, axis=1).mean(axis=1)
        return np.asarray(1 / (1 + np.exp(-self.difficulty[query] - helped)))

    def values(self) -> tuple[float, float]:
        """Returns the true values of the candidate and of the default."""
        every = np.arange(QUERIES)
        default = np.broadcast_to(DEFAULT_SLATE, self.slates.shape)
        ours, theirs = self.reward(every, self.slates), self.reward(every, default)
        return float(self.popularity @ ours), float(self.popularity @ theirs)

    def least_error(self, scenario: Scenario) -> float:
        """Returns the efficiency bound for independent decisions (Hahn 1998, theorem 1), exploration left out."""
        every = np.arange(QUERIES)
        ours = self.reward(every, self.slates)
        theirs = self.reward(every, np.broadcast_to(DEFAULT_SLATE, self.slates.shape))
        differs = (self.slates != DEFAULT_SLATE).any(axis=1)
        noise = ours * (1 - ours) / scenario.share + theirs * (1 - theirs) / (1 - scenario.share)
        spread = np.square(ours - theirs - self.popularity @ (ours - theirs))
        return float(np.sqrt(self.popularity @ (differs * noise + spread) / scenario.decisions))


@dataclass(frozen=True, slots=True, eq=False)
class Canary:
    """A log with its truth."""

    logged: Logged
    contest: Contest
    candidate_value: float
    default_value: float


def world(scenario: Scenario, rng: np.random.Generator) -> World:
    """Returns a world in which the candidate's uplift is the scenario's, exactly."""
    popularity = 1 / (10.0 + rng.permutation(QUERIES))
    popularity /= popularity.sum()
    difficulty, effects = rng.normal(size=QUERIES), rng.normal(0, 1.0, (QUERIES, CANDIDATES))
    shuffled = rng.permutation(QUERIES)
    differs = np.zeros(QUERIES, dtype=bool)
    differs[shuffled] = np.cumsum(popularity[shuffled]) <= scenario.differ
    slates = np.tile(DEFAULT_SLATE, (QUERIES, 1))
    slates[differs, 3] = 4  # the last place is another case ...
    twice = differs & (rng.random(QUERIES) < 0.5)  # noqa: PLR2004 - ... and of half of them the third as well
    slates[twice, 2] = 5
    every = np.arange(QUERIES)
    default = World(popularity, difficulty, effects, slates).reward(every, np.broadcast_to(DEFAULT_SLATE, slates.shape))
    low, high = -30.0, 30.0
    for _ in range(30):  # the true uplift rises with the effect of the cases that only the candidate shows
        middle = (low + high) / 2
        drawn = World(popularity, difficulty, effects + middle * (np.arange(CANDIDATES) >= PLACES), slates)
        uplift = popularity @ (drawn.reward(every, slates) - default)
        low, high = (middle, high) if uplift < scenario.uplift else (low, middle)
    return drawn


def explored(slate: Ints, rate: float, rng: np.random.Generator) -> Ints:
    """Returns the slates, (n, PLACES), a share of them with another of the top 8 in the last place."""
    taken = (slate[:, :, None] == np.arange(CANDIDATES)).any(axis=1)
    others = np.nonzero(~taken)[1].reshape(len(slate), -1)
    chosen = others[np.arange(len(slate)), rng.integers(0, others.shape[1], len(slate))]
    result = slate.copy()
    result[:, -1] = np.where(rng.random(len(slate)) < rate, chosen, slate[:, -1])
    return result


def slate_probability(slate: Ints, greedy: Ints, rate: float) -> Floats:
    """Returns the probability, (n,), of a slate under a policy that explores the last place at this rate."""
    head = (slate[:, :-1] == greedy[:, :-1]).all(axis=1)
    same = head & (slate[:, -1] == greedy[:, -1])
    other = head & ~(slate[:, -1:] == greedy).any(axis=1)
    return np.asarray((1 - rate) * same + rate / (CANDIDATES - PLACES) * other)


def canary(scenario: Scenario, rng: np.random.Generator) -> Canary:
    """Returns one log of the scenario, drawn from a world of its own."""
    drawn = world(scenario, rng)
    query = rng.choice(QUERIES, scenario.decisions, p=drawn.popularity)
    arm = (rng.random(QUERIES)[query] if scenario.sticky else rng.random(len(query))) < scenario.share
    ours, theirs = drawn.slates[query], np.tile(DEFAULT_SLATE, (len(query), 1))
    slate = explored(np.where(arm[:, None], ours, theirs), scenario.explore, rng)
    reward = (rng.random(len(query)) < drawn.reward(query, slate)).astype(np.float64)
    earlier = rng.choice(QUERIES, EARLIER, p=drawn.popularity)
    earlier_slate = np.tile(DEFAULT_SLATE, (EARLIER, 1))
    earlier_reward = (rng.random(EARLIER) < drawn.reward(earlier, earlier_slate)).astype(np.float64)
    candidate_value, default_value = drawn.values()
    if scenario.permuted:
        reward, earlier_reward = rng.permutation(reward), rng.permutation(earlier_reward)
        candidate_value = default_value = float("nan")
    hint = drawn.difficulty + rng.normal(size=QUERIES)  # what the service sees of the difficulty: a noisy similarity
    mixture = [slate_probability(slate, greedy, scenario.explore) for greedy in (theirs, ours)]
    logged = Logged(
        reward=reward,
        logged_propensity=mixture_propensity([1 - scenario.share, scenario.share], mixture),
        group=query,
        segment=query % SEGMENTS,
        covariates=np.column_stack((hint[query], earlier_mean(earlier_reward, earlier, query))),
    )
    claimed = scenario.uplift if scenario.claimed is None else scenario.claimed
    gain = (0.0 if scenario.permuted else claimed) / scenario.differ * (ours != theirs).any(axis=1)
    predicted = np.clip(_fitted(hint[earlier], earlier_reward, hint[query]) + gain, 0, 1)
    default = Target(slate_probability(slate, theirs, 0))
    contest = Contest(Target(slate_probability(slate, ours, 0), predicted=predicted), default, default)
    return Canary(logged, contest, candidate_value, default_value)


def _fitted(hint: Floats, reward: Floats, query_hint: Floats) -> NDArray[np.float64]:
    """Returns the reward expected of the default, (n,), by least squares on the earlier decisions."""
    slope, level = np.polyfit(hint, reward, 1)
    return np.asarray(level + slope * query_hint)


def mixture_propensity(shares: Sequence[float], probabilities: Sequence[Floats]) -> Floats:
    """Returns the propensity of each logged slate, (n,), when policy k serves a share of all decisions.

    It is the sum over policies, not the term of the one that happened to serve: a slate that all of them give has 1.
    """
    return np.asarray(np.asarray(shares, dtype=np.float64) @ np.asarray(probabilities, dtype=np.float64))


def earlier_mean(reward: Floats, earlier_group: Ints, group: Ints, strength: float = 2.0) -> Floats:
    """Returns each row's mean reward of the same group in an earlier log, (n,), shrunk to that log's mean.

    ``strength`` is the number of rewards that the overall mean counts for; missing rewards are left out.
    """
    seen = np.isfinite(reward)
    overall = float(reward[seen].mean()) if seen.any() else 0.5
    known, place = np.unique(np.concatenate((earlier_group[seen], group)), return_inverse=True)
    past = place[: int(seen.sum())]
    total = np.bincount(past, reward[seen], len(known)) + strength * overall
    count = np.bincount(past, minlength=len(known)) + strength
    return np.asarray((total / count)[place[int(seen.sum()) :]])
