"""Benchmark 1: simulated reuse, the product's policy against every baseline at 250 and 3,000 logged decisions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from bench.learning.banking import Corpus, Log, Scenario, World, earned, world
from bench.learning.claims import Claims
from bench.learning.learner import (
    PLAIN,
    PLAN,
    UNTRAINED,
    Decision,
    Prepared,
    Recipe,
    Service,
    examples,
    permuted,
    query_only,
    remembered,
    served,
)
from bench.learning.memory import Scene
from bench.learning.rules import RULES, interval, rewards
from bench.measure import Measurement
from policy.decide import Policy
from policy.logged import Floats
from policy.slate import Slate

SEEDS, FRESH = (0, 1, 2, 3, 4), (10, 11, 12)
"""Seeds of worlds used while the policy was built, and of fresh worlds."""
FEW, MANY = 250, 3_000
AIMS: Mapping[int, float] = {FEW: 0.62, MANY: 0.75}
NAME = "reuse"
POLICY = "THE POLICY (factory's start)"
DEFAULT = "untrained default"
FACTORY = "factory's start, nothing learned"
PERMUTED, PERMUTED_START = "control: permuted rewards", "control: factory's start, permuted rewards"

REFERENCES: Mapping[str, Recipe] = {
    "logistic regression from the default": replace(PLAIN, plan=PLAN),
}

Earned = dict[str, list[Floats]]
"""Rewards of the test queries, (test,), by policy and seed."""


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """A world as the product sees it."""

    world: World
    effects: Floats  # (cases, intents), the stored answer as the one tool that the case's plan calls
    stream: list[Scene] = field(repr=False)
    test: list[Scene] = field(repr=False)

    def outcome(self, now: int, slate: Slate) -> float:
        """Returns the feedback on a decision of the stream, flips included; one case that helps is enough."""
        pool = self.world.pools.case[now]
        helps = any(self.world.bank.answers[pool[place]] == self.world.stream.intents[now] for place in slate)
        return float(helps != self.world.flipped[now])


def stage(corpus: Corpus, scenario: Scenario, seed: int) -> Stage:
    """Returns the world of a seed; every stored run calls itself a success, wrong answer or not."""
    drawn = world(corpus, scenario, np.random.default_rng(seed))
    cases = len(drawn.bank.answers)
    effects = np.eye(corpus.intents)[drawn.bank.answers]
    claims = Claims(drawn.bank, effects, np.ones(cases), np.zeros(cases, np.bool_), np.arange(cases))
    return Stage(drawn, effects, claims.scenes(drawn.stream, drawn.pools), claims.scenes(drawn.test, drawn.test_pools))


def run(corpus: Corpus, scenario: Scenario | None = None, say: Callable[[str], object] = print) -> list[Measurement]:
    """Returns the table: all policies on SEEDS, the policy and the fixed rules on FRESH ones as well."""
    scenario = scenario or Scenario()
    by_policy = measured(corpus, scenario, SEEDS, full=True)
    say("fresh seeds")
    fresh = measured(corpus, scenario, FRESH, full=False)
    rows: list[Measurement] = []
    for decisions in (FEW, MANY):
        rows += _rows(by_policy[decisions], decisions, SEEDS)
        rows += _rows(fresh[decisions], decisions, FRESH)
    return rows


def measured(corpus: Corpus, scenario: Scenario, seeds: Sequence[int], *, full: bool) -> dict[int, Earned]:
    """Returns every policy's rewards on the test file, by the number of logged decisions."""
    stages = [stage(corpus, scenario, seed) for seed in seeds]
    services = [
        Service(each.stream, each.outcome, each.effects, 1, np.random.default_rng([seed, 1]))
        for each, seed in zip(stages, seeds, strict=True)
    ]
    trained = served(services, Recipe(), (FEW, MANY))
    by_policy: dict[int, Earned] = {}
    for decisions, policies in trained.items():
        logs = [service.log[:decisions] for service in services]
        by_policy[decisions] = _earned(stages, logs, policies, seeds, full=full)
    return by_policy


def _earned(
    stages: Sequence[Stage],
    logs: Sequence[list[Decision]],
    trained: Sequence[Policy],
    seeds: Sequence[int],
    *,
    full: bool,
) -> Earned:
    """Returns the rewards of every policy that these logs train."""
    recipes = REFERENCES if full else {}
    rows = [examples(log, 1) for log in logs]
    others = {name: recipe.fit(rows, range(len(rows))) for name, recipe in recipes.items()}
    if full:
        others["query-only model"] = PLAIN.fit([query_only(each) for each in rows], range(len(rows)))
    controls = _shuffled(stages, logs, seeds) if full else [{}] * len(stages)
    by_policy: Earned = {}
    for number, (each, log) in enumerate(zip(stages, logs, strict=True)):
        test = Prepared.of(remembered(each.effects, log), each.test)
        scores = {DEFAULT: test.scores(None), FACTORY: test.scores(UNTRAINED), POLICY: test.scores(trained[number])}
        scores |= {name: test.scores(policies[number]) for name, policies in others.items()} | controls[number]
        rewarded = {name: earned(each.world, score.astype(np.float64)) for name, score in scores.items()}
        for name, reward in (rewards(each.world, as_log(log)) | rewarded).items():
            by_policy.setdefault(name, []).append(reward)
    return by_policy


def _shuffled(
    stages: Sequence[Stage], logs: Sequence[list[Decision]], seeds: Sequence[int]
) -> list[dict[str, NDArray[np.float32]]]:
    """Returns by stage the scores after the same decisions with shuffled rewards, which hold no signal."""
    shuffled = [
        permuted(log, each.effects, np.random.default_rng([seed, 2]))
        for each, log, seed in zip(stages, logs, seeds, strict=True)
    ]
    blind = Recipe().fit([examples(log, 1) for log in shuffled], range(len(logs)))
    tests = [Prepared.of(remembered(each.effects, log), each.test) for each, log in zip(stages, shuffled, strict=True)]
    return [
        {PERMUTED_START: test.scores(UNTRAINED), PERMUTED: test.scores(policy)}
        for test, policy in zip(tests, blind, strict=True)
    ]


def _rows(by_policy: Earned, decisions: int, seeds: Sequence[int]) -> list[Measurement]:
    detail = f"test file, seeds {seeds[0]}-{seeds[-1]}"
    rules = {name: float(np.mean(by_policy[name])) for name in RULES}
    best = max(rules, key=lambda name: rules[name])
    rows = [
        _row(f"{decisions:,}: {name}", by_policy[name], detail, AIMS[decisions] if name == POLICY else None)
        for name in sorted(by_policy, key=lambda name: float(np.mean(by_policy[name])))
    ]
    pairs = {
        f"policy - best fixed rule ({best})": (POLICY, best, True),
        "policy - untrained default": (POLICY, DEFAULT, True),
        "policy - factory's start: learned": (POLICY, FACTORY, True),
    }
    rows += [
        _row(f"{decisions:,}: {name}", _differences(by_policy, one, other), f"paired, {detail}", 0.0 if aim else None)
        for name, (one, other, aim) in pairs.items()
    ]
    if PERMUTED in by_policy:
        control = _differences(by_policy, PERMUTED, PERMUTED_START)
        rows.append(_row(f"{decisions:,}: {PERMUTED}, learned", control, f"paired, {detail}", None))
    return rows


def _differences(by_policy: Earned, one: str, other: str) -> list[Floats]:
    return [mine - theirs for mine, theirs in zip(by_policy[one], by_policy[other], strict=True)]


def _row(name: str, by_seed: Sequence[Floats], detail: str, aim: float | None) -> Measurement:
    bounds = interval(by_seed)
    return Measurement(
        name=f"{NAME} {name}",
        value=bounds.estimate,
        unit="",
        detail=detail,
        aim=aim,
        at_least=True,
        interval=(bounds.low, bounds.high),
        proven=aim == 0,
    )


def as_log(log: Sequence[Decision]) -> Log:
    """Returns the log in the form of the fixed rules, without decisions that served an empty slate."""
    kept = [(row, decision) for row, decision in enumerate(log) if decision.slate]
    place = np.array([decision.slate[0] for _, decision in kept])
    return Log(
        row=np.array([row for row, _ in kept]),
        place=place,
        case=np.array([decision.scene.case[at] for at, (_, decision) in zip(place, kept, strict=True)]),
        reward=np.array([decision.reward for _, decision in kept]),
    )
