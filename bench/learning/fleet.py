"""Benchmark 8: what a new user gains from a head that other users' numbers trained, in simulated reuse.

Every user has some of the intents, a bank of their own and a few rewarded decisions; nothing but ``Examples`` leaves
them. They are pooled as a fleet's are, by ``writer.training.shared_prior.pool``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bench.learning.banking import Corpus, Questions, Scenario
from bench.learning.learner import PLAN, Decision, Recipe, Service, examples, remembered
from bench.learning.memory import Memory
from bench.learning.reuse import Stage, stage
from bench.learning.rules import interval
from bench.measure import Measurement
from policy.decide import Policy, score
from policy.examples import Examples
from policy.inputs import factory
from policy.logged import Floats
from policy.network import Head
from policy.train import Plan, train
from writer.training.shared_prior import pool

BEGIN = 1_000
"""Number of the first contributor: the ridge was chosen on users of lower numbers."""
CONTRIBUTORS, DECISIONS = 200, 30
NEW, FIRST = 50, 20
"""New users, and how many of their first decisions are judged."""
MORE = 400
"""New users, those among them, who tell the gain closer than the luck of so few does."""
ATTACKED = 100
"""Contributors, and as many who are none, whom an attacker tries to tell apart by their loss."""
PLANS = {"fleet": PLAN, "fleet with a fixed ridge of 100": Plan(ridge=100.0)}
"""It chooses its ridge as a profile does: a fixed one earns no less here, and hurts on agent runs."""
INTENTS = 40
"""Of each user, drawn from all."""
CASES = 400
OWN, EXPERIENCED = 3_000, 3
"""Decisions of an experienced user, and how many such users the fleet is compared with: each takes long."""
FORGED = 0.2
"""Share of the contributors who always say the opposite of what is true."""
GAIN, SHARE, FORGED_LOSS, KNOWN_MEMBER = 0.08, 0.9, 0.02, 0.52
"""Aims: above the default, of what own decisions reach, what forgers may cost, and how often a member is told."""


@dataclass(frozen=True, slots=True, eq=False)
class User:
    """One user's world, and what they contribute."""

    stage: Stage
    examples: Examples

    @property
    def forged(self) -> Examples:
        """Returns the contribution of a user who says the opposite of what came of every decision."""
        return replace(self.examples, reward=1 - self.examples.reward)


def user(corpus: Corpus, number: int) -> User:
    """Returns the user of this number, after DECISIONS by the default."""
    world = world_of(corpus, number, DECISIONS)
    return User(world, examples(lived(world, number), 1))


def world_of(corpus: Corpus, number: int, decisions: int) -> Stage:
    """Returns the world of a user: INTENTS of their own, and FIRST questions that nobody asked before."""
    rng = np.random.default_rng([number, 3])
    intents = rng.permutation(corpus.intents)[:INTENTS]
    asked = _of(corpus.test, intents)
    few = rng.permutation(len(asked.texts))[:FIRST]
    own = Corpus(_of(corpus.train, intents), asked.take(few), len(intents))
    return stage(own, Scenario(cases=CASES, decisions=decisions), number)


def _of(questions: Questions, intents: np.ndarray) -> Questions:
    """Returns the questions of these intents, which get the numbers of their places."""
    mine = questions.take(np.flatnonzero(np.isin(questions.intents, intents)))
    place = np.argsort(intents)[np.searchsorted(np.sort(intents), mine.intents)]
    return replace(mine, intents=place.astype(np.int64))


def lived(world: Stage, number: int) -> list[Decision]:
    """Returns the log of the world's whole stream, served by the default as it explores."""
    service = Service(world.stream, world.outcome, world.effects, 1, np.random.default_rng([number, 1]))
    service.advance(len(world.stream))
    return service.log


def fleet(contributions: Sequence[Examples], plan: Plan) -> Head:
    """Returns the head that the contributions train together, each user's weight capped.

    Raises:
        ValueError: there are fewer users than a shared prior wants.
    """
    together = pool({str(number): [each] for number, each in enumerate(contributions)})
    if together is None:
        raise ValueError("too few users for a fleet")
    return train([together], plan, [0], factory(Recipe().members, 0))[0]


def earned(world: Stage, policy: Policy | None, log: Sequence[Decision] = ()) -> float:
    """Returns what the first case earns on average in a user's FIRST decisions, who learns from each, after ``log``."""
    memory = remembered(world.effects, log) if log else Memory(world.effects)
    works, rewards = world.world.test_works(), []
    for now, scene in enumerate(world.test):
        place = int(score(policy, memory.features(scene)).total.argmax())
        rewards.append(float(works[now, place]))
        memory.learn(scene, (place,), rewards[-1])
    return float(np.mean(rewards))


def told_apart(members: Floats, others: Floats) -> Floats:
    """Returns whether each user was rightly called member or not by their loss under the head, 0 or 1.

    The attacker knows half of the users and picks the threshold that tells those apart best; judged on the other half.

    Source: the loss attack of Yeom et al. 2018.
    """
    loss = np.concatenate([members, others])
    member = np.concatenate([np.ones(len(members), np.bool_), np.zeros(len(others), np.bool_)])
    known = np.concatenate([np.arange(len(each)) % 2 == 0 for each in (members, others)])
    right = np.empty(len(loss))
    for half in (known, ~known):
        hits = ((loss[half] <= loss[half][:, None]) == member[half]).mean(axis=1)
        threshold = loss[half][hits.argmax()]
        right[~half] = (loss[~half] <= threshold) == member[~half]
    return right


def loss(head: Head, contribution: Examples) -> float:
    """Returns the mean cross-entropy of a user's outcomes under the head."""
    case = (contribution.credit * contribution.prior).sum(axis=1) + head.credited(
        contribution.inputs, contribution.credit
    )
    odds = head.log_odds(contribution.query, case, contribution.empty).mean(axis=0)
    return float((np.logaddexp(0, odds) - contribution.reward * odds).mean())


def run(corpus: Corpus, say: Callable[[str], object] = print) -> list[Measurement]:
    """Returns what new users earn with the fleet's head, without it, and after decisions of their own."""
    users = [user(corpus, number) for number in range(BEGIN, BEGIN + CONTRIBUTORS)]
    say("fleet: users")
    given = [each.examples for each in users]
    forgers = round(FORGED * len(users))
    heads = {name: fleet(given, plan) for name, plan in PLANS.items()}
    heads["forged"] = fleet([each.forged for each in users[:forgers]] + given[forgers:], PLANS["fleet"])
    say("fleet: heads")
    policies = {"default": None, **{name: Policy(name, head, 1.0) for name, head in heads.items()}}
    after = BEGIN + CONTRIBUTORS
    new = [user(corpus, number) for number in range(after, after + MORE)]
    more = {name: np.array([earned(each.stage, policies[name]) for each in new]) for name in ("default", "fleet")}
    got = {name: np.array([earned(each.stage, policy) for each in new[:NEW]]) for name, policy in policies.items()}
    members, others = (
        np.array([loss(heads["fleet"], each.examples) for each in part]) for part in (users[:ATTACKED], new[:ATTACKED])
    )
    detail = f"{NEW} new users' first {FIRST} decisions; {CONTRIBUTORS} users with {DECISIONS} decisions each"
    gains = [
        _row(f"{name} - default", got[name] - got["default"], f"paired, {detail}", GAIN, at_least=True)
        for name in PLANS
    ]
    return [
        *(_row(name, got[name], detail) for name in ("default", *PLANS)),
        *gains,
        _row(f"fleet - default, {MORE} new users", more["fleet"] - more["default"], "paired", GAIN, at_least=True),
        _row(f"{FORGED:.0%} forge: lost", got["fleet"] - got["forged"], f"paired, {detail}", FORGED_LOSS),
        _row("membership told", told_apart(members, others), f"by loss, {ATTACKED} and {ATTACKED}", KNOWN_MEMBER),
        *_experienced(corpus, policies["fleet"]),
    ]


def _experienced(corpus: Corpus, policy: Policy | None) -> list[Measurement]:
    """Returns what users reach by OWN decisions, and which share of it the fleet does who know nothing yet."""
    first = BEGIN + CONTRIBUTORS + ATTACKED
    numbers = range(first, first + EXPERIENCED)
    worlds = [world_of(corpus, number, OWN) for number in numbers]
    logs = [lived(world, number) for world, number in zip(worlds, numbers, strict=True)]
    own = Recipe().fit([examples(log, 1) for log in logs], numbers)
    reached = np.array([earned(*each) for each in zip(worlds, own, logs, strict=True)])
    fresh = np.array([earned(world, policy) for world in worlds])
    detail = f"{EXPERIENCED} users, {FIRST} decisions each"
    return [
        _row(f"own {OWN:,} decisions and their memory", reached, detail),
        Measurement(
            "fleet: share of that without any", float(fresh.mean() / reached.mean()), "", detail, SHARE, at_least=True
        ),
    ]


def _row(name: str, by_user: Floats, detail: str, aim: float | None = None, *, at_least: bool = False) -> Measurement:
    bounds = interval([by_user])
    limits = (bounds.low, bounds.high)
    return Measurement(f"fleet: {name}", bounds.estimate, "", detail, aim, at_least=at_least, interval=limits)
