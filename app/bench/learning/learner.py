"""The learned policy in a made-up service: it serves a canary, is logged with exact chances, and trains on the log."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from app.bench.learning.memory import Decision, Memory, Scene, Seen
from policy.examples import Array, Examples, importance, shared_credit
from policy.explore import Lottery, explored, mixture
from policy.inputs import factory
from policy.network import Head
from policy.slate import Slate, choose, order
from policy.train import Plan, train

EVIDENCE = 100.0
"""n0 of the blend: decisions at which the learned part counts half."""
MEMBERS = 5
Outcome = Callable[[int, Slate], float]
"""Answers the reward of a slate on a scene of the stream, by its number."""


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """The default, or with a head the blend of both: score = prior + n / (n + n0) * mean of the case parts."""

    head: Head | None = None
    share: float = 1.0
    """How much the head counts: n / (n + n0)."""

    def scores(self, seen: Seen) -> Array:
        """Returns the log odds by which the candidates are ordered, (n,), up to a constant of the query."""
        if self.head is None:
            return seen.prior
        part = self.head.case_part(seen.inputs).mean(axis=0)
        return np.asarray(seen.prior + np.float32(self.share) * part, dtype=np.float32)

    def slate(self, scene: Scene, seen: Seen, places: int) -> Slate:
        """Returns what it serves when it does not explore."""
        return choose(scene.field, order(scene.field, self.scores(seen)), places)


DEFAULT = Policy()
UNTRAINED = Policy(factory(1, 0))
"""Where training begins: what it gains over the default was not learned from the log."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the policy is trained; ``start`` is the factory's head unless a reference needs another."""

    hidden: int = 0
    members: int = MEMBERS
    plan: Plan = Plan()
    start: Head | None = None

    def fit(self, examples: Examples, seed: int) -> Policy:
        """Returns the policy that these decisions teach."""
        return self.fit_all([examples], [seed])[0]

    def fit_all(self, profiles: Sequence[Examples], seeds: Sequence[int]) -> list[Policy]:
        """Returns a policy for each profile, trained together."""
        start = self.start or factory(self.members, self.hidden)
        heads = train(profiles, self.plan, seeds, start)
        return [Policy(head, len(e) / (len(e) + EVIDENCE)) for head, e in zip(heads, profiles, strict=True)]


@dataclass(frozen=True, slots=True)
class Serving:
    """How decisions are taken.

    Attributes:
        places: of a slate.
        explore: share of either arm's decisions whose last place is drawn.
        canary: share of decisions that the candidate serves, once there is one.
        start: decisions before the first candidate is trained.
        refit: decisions between trainings.
    """

    places: int
    explore: float = 0.05
    canary: float = 0.25
    start: int = 100
    refit: int = 250

    def trains(self, now: int) -> bool:
        """Returns whether a candidate is trained before this decision, 0-based."""
        return now == self.start or (now > self.start and now % self.refit == 0)


def serve(
    scenes: Iterable[Scene],
    outcome: Outcome,
    memory: Memory,
    fit: Callable[[list[Decision]], Policy],
    serving: Serving,
    rng: np.random.Generator,
) -> list[Decision]:
    """Returns the log of the stream: by the default, and on the canary's share by the candidate of the moment.

    Every reward is known before the next decision. Nothing but ``outcome`` knows what a slate is worth.
    """
    log: list[Decision] = []
    candidate: Policy | None = None
    for now, scene in enumerate(scenes):
        if serving.canary and serving.trains(now):
            candidate = fit(log)
        seen = memory.seen(scene)
        arms = [lottery(DEFAULT, scene, seen, serving)]
        if candidate:
            arms.append(lottery(candidate, scene, seen, serving))
        canary = candidate is not None and bool(rng.random() < serving.canary)
        slate = arms[canary].draw(rng)
        chance = (
            mixture([1 - serving.canary, serving.canary], arms).chance(slate) if candidate else arms[0].chance(slate)
        )
        reward = outcome(now, slate)
        log.append(Decision(scene, seen, slate, chance, reward, canary))
        memory.learn(scene, slate, reward)
    return log


def lottery(policy: Policy, scene: Scene, seen: Seen, serving: Serving) -> Lottery:
    """Returns the slates that the policy may serve, and their chances."""
    scores, field = policy.scores(seen), scene.field
    ordered = order(field, scores)
    return explored(field, scores, ordered, choose(field, ordered, serving.places), serving.explore)


def examples(log: Sequence[Decision], places: int) -> Examples:
    """Returns the log as training sees it; every slate's outcome is shared by its places."""
    filled = np.array([[place < len(d.slate) for place in range(places)] for d in log])
    slate = np.array([[*d.slate, *[0] * (places - len(d.slate))] for d in log])
    rows = np.arange(len(log))[:, None]
    return Examples(
        inputs=np.stack([d.seen.inputs for d in log])[rows, slate],
        prior=np.stack([d.seen.prior for d in log])[rows, slate],
        credit=shared_credit(filled, np.zeros_like(filled), np.zeros(len(log), dtype=np.bool_)),
        query=np.stack([d.seen.query for d in log]),
        reward=np.array([d.reward for d in log], dtype=np.float32),
        weight=importance(np.array([d.chance for d in log])),
        group=np.unique([d.scene.query for d in log], return_inverse=True)[1].astype(np.int64),
    )


def permuted(log: Sequence[Decision], effects: NDArray[np.float64], rng: np.random.Generator) -> list[Decision]:
    """Returns the log with its rewards shuffled, and what was seen of earlier rewards with it: nothing to learn."""
    memory = Memory(effects)
    shuffled = []
    for decision, reward in zip(log, rng.permutation([d.reward for d in log]).tolist(), strict=True):
        shuffled.append(replace(decision, reward=reward, seen=memory.seen(decision.scene)))
        memory.learn(decision.scene, decision.slate, reward)
    return shuffled
