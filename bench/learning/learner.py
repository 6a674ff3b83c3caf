"""The learned policy in a made-up service: it serves a canary, is logged with exact chances, and trains on the log.

Deciding, exploring, crediting and training are the product's: ``policy.decide``, ``policy.examples``, ``policy.train``.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bench.learning.memory import Memory, Scene, alike
from policy.decide import CANDIDATE, Budget, Policy, Trial, decide
from policy.decide import DEFAULT as BY_DEFAULT
from policy.examples import Array, Examples, importance
from policy.features import Features
from policy.inputs import CASE, QUERY, factory, inputs_of
from policy.logged import Floats
from policy.network import Head, untrained
from policy.slate import Field, Slate
from policy.train import RIDGES, Plan, train

HALF = 100.0
"""n0 of the blend: decisions at which the learned part counts half."""
MEMBERS = 5
PLAN = Plan(ridges=RIDGES)
"""Plan of training with each log's own ridge, chosen on its later decisions, never on a test."""
CANARY_PLAN = Plan(ridge=300.0)
"""Plan of the candidates on the way, with a fixed ridge: choosing one for each would take most of the time."""
START, REFIT = 100, 250
"""Decisions before the first candidate, and between two."""

UNTRAINED = Policy("factory", factory(1), 1.0)
"""The head at which training begins, fully blended in: its gain over the default is not learned from the log."""

RewardOf = Callable[[int, Slate], float]
"""Returns the reward, 0 to 1, of a slate shown on the scene of this number in the stream."""

SharesOf = Callable[[int, Slate], Floats]
"""Returns each place's share of that outcome, (k,): see ``policy.examples.shared_credit``."""


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """One logged decision with its reward; ``chance`` is the propensity of the whole slate."""

    scene: Scene
    features: Features
    shown: "Shown"
    slate: Slate
    chance: float
    reward: float
    share: Floats
    canary: bool

    @property
    def field(self) -> Field:
        """Returns the field of the slate's rules."""
        return self.scene.field(self.features)


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """The numbers of one slate of k cases for training, kept for every later training."""

    inputs: Array  # (k, D)
    prior: Array  # (k,)
    query: Array  # (1, G)

    @classmethod
    def of(cls, features: Features, slate: Slate) -> "Shown":
        """Returns the slate's numbers from the candidates' features."""
        places = list(slate)
        seen = inputs_of(features)
        return cls(seen.case[places], seen.prior[places], seen.query)


@dataclass(frozen=True, slots=True)
class Recipe:
    """Settings of a training; without ``start`` it begins at the factory's head."""

    members: int = MEMBERS
    plan: Plan = PLAN
    start: Head | None = None

    def fit(self, profiles: Sequence[Examples], seeds: Sequence[int]) -> list[Policy]:
        """Returns the policy that each profile's decisions teach; they are trained together."""
        start = self.start or factory(self.members)
        heads = train(profiles, self.plan, seeds, start)
        return [Policy("learned", head, len(e) / (len(e) + HALF)) for head, e in zip(heads, profiles, strict=True)]


PLAIN = Recipe(plan=CANARY_PLAN, start=untrained(len(CASE), len(QUERY), MEMBERS))
"""Recipe that begins at the default, with a fixed ridge, for models that see no case."""


class Service:
    """A stream of scenes, decided by the default and, on the canary's share, by the candidate of the moment."""

    def __init__(  # noqa: PLR0913 - a world, and how it is served
        self,
        scenes: Sequence[Scene],
        outcome: RewardOf,
        effects: Floats,
        places: int,
        rng: np.random.Generator,
        *,
        shares: SharesOf = lambda _now, slate: alike(slate),
    ) -> None:
        """Takes the stream, the source of its rewards, and the plans of the bank's cases, (cases, tools)."""
        self.log: list[Decision] = []
        self.candidate: Policy | None = None
        self.places = places
        self._scenes, self._outcome, self._shares, self._rng = scenes, outcome, shares, rng
        self._memory = Memory(effects)

    def advance(self, decisions: int) -> None:
        """Decides until so many are logged; every reward is known before the next decision."""
        arms = {BY_DEFAULT: None} | ({CANDIDATE: self.candidate} if self.candidate else {})
        for now in range(len(self.log), decisions):
            scene = self._scenes[now]
            features = self._memory.features(scene)
            trial = Trial(arms, Budget(), int(self._rng.integers(2**63)))
            decided = decide(features, scene.field(features), self.places, trial)
            reward = self._outcome(now, decided.slate)
            chance = decided.lottery.chance(decided.slate)
            share = self._shares(now, decided.slate)
            shown = Shown.of(features, decided.slate)
            canary = decided.arm == CANDIDATE
            self.log.append(Decision(scene, features, shown, decided.slate, chance, reward, share, canary))
            self._memory.learn(scene, decided.slate, reward, share)


def served(services: Sequence[Service], recipe: Recipe, marks: Sequence[int]) -> dict[int, list[Policy]]:
    """Serves all streams up to the last mark, and returns the policies trained on the first so many decisions.

    The candidates of all streams are trained together, as a night's training does; none sees another's log.
    """
    last = max(marks)
    trained: dict[int, list[Policy]] = {}
    for stop in sorted({START, *range(REFIT, last + 1, REFIT), *marks}):
        for service in services:
            service.advance(stop)
        now = recipe if stop in marks else replace(recipe, plan=CANARY_PLAN)
        fitted = now.fit([examples(service.log, service.places) for service in services], range(len(services)))
        for service, policy in zip(services, fitted, strict=True):
            service.candidate = policy
        if stop in marks:
            trained[stop] = fitted
    return trained


def examples(log: Sequence[Decision], places: int) -> Examples:
    """Returns the log as training sees it."""
    filled = np.array([[place < len(d.slate) for place in range(places)] for d in log])
    inputs = np.zeros((*filled.shape, len(CASE)), np.float32)
    base, credit = np.zeros(filled.shape, np.float32), np.zeros(filled.shape, np.float32)
    inputs[filled] = np.concatenate([d.shown.inputs for d in log])
    base[filled] = np.concatenate([d.shown.prior for d in log])
    credit[filled] = np.concatenate([d.share for d in log])
    return Examples(
        inputs=inputs,
        prior=base,
        credit=credit,
        query=np.concatenate([d.shown.query for d in log]),
        reward=np.array([d.reward for d in log], dtype=np.float32),
        weight=importance(np.array([d.chance for d in log])),
        empty=filled.sum(axis=1) == 0,
        group=np.unique([d.scene.query for d in log], return_inverse=True)[1].astype(np.int64),
    )


def remembered(effects: Floats, log: Iterable[Decision]) -> Memory:
    """Returns the memory after the log."""
    return Memory(effects, ((d.scene, d.slate, d.reward, d.share) for d in log))


def permuted(log: Sequence[Decision], effects: Floats, rng: np.random.Generator) -> list[Decision]:
    """Returns the log with shuffled rewards, and features made from these: there is no signal to learn."""
    memory = Memory(effects)
    shuffled = []
    for decision, reward in zip(log, rng.permutation([d.reward for d in log]).tolist(), strict=True):
        seen = memory.features(decision.scene)
        shuffled.append(replace(decision, reward=reward, features=seen, shown=Shown.of(seen, decision.slate)))
        memory.learn(decision.scene, decision.slate, reward, decision.share)
    return shuffled


def query_only(rows: Examples) -> Examples:
    """Returns the examples without the cases' inputs, only with the default's log odds."""
    return replace(rows, inputs=np.zeros_like(rows.inputs))


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """Scenes of equally many candidates, ready for any policy: prior (queries, n), inputs (queries * n, D)."""

    prior: Array
    inputs: Array

    @classmethod
    def of(cls, memory: Memory, scenes: Iterable[Scene]) -> "Prepared":
        """Returns the scenes as they look with this memory."""
        seen = [inputs_of(memory.features(scene)) for scene in scenes]
        inputs = np.concatenate([each.case for each in seen])
        return cls(np.stack([each.prior for each in seen]), inputs)

    def scores(self, policy: Policy | None) -> Array:
        """Returns the policy's scores, (queries, n): ``policy.decide.score`` for all queries at once."""
        if policy is None:
            return self.prior
        part = policy.head.case_part(self.inputs).mean(axis=0).reshape(self.prior.shape)
        return np.asarray(self.prior + policy.blend * part, dtype=np.float32)
