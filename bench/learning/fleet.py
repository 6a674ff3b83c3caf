"""Benchmark 8: the gain of a new user by a head that other users' numbers trained, in simulated reuse.

Every user has some of the intents, an own bank and a few rewarded decisions, and contributes only ``Examples``. These
are pooled like a fleet's, by ``writer.training.shared_prior.pool``.
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
"""Number of new users, and of their first decisions that are judged."""
MORE = 400
"""Number of new users, the NEW among them, for a closer estimate of the gain."""
ATTACKED = 100
"""Number of contributors, and of others, whom an attacker tries to separate by their loss."""
PLANS = {"fleet": PLAN, "fleet with a fixed ridge of 100": Plan(ridge=100.0)}
"""Plans of training; a fixed ridge earns no less here, but does harm on agent runs."""
INTENTS = 40
"""Number of intents of each user, drawn from all."""
CASES = 400
OWN, EXPERIENCED = 3_000, 3
"""Decisions of an experienced user, and number of these users, each of whom takes long."""
FORGED = 0.2
"""Share of the contributors who always report the opposite of the truth."""
GAIN, SHARE, FORGED_LOSS, KNOWN_MEMBER = 0.08, 0.9, 0.02, 0.52
"""Aims: gain over the default, share of the reward by own decisions, loss by forgers, share of members recognised."""


@dataclass(frozen=True, slots=True, eq=False)
class User:
    """One user's world and contribution."""

    stage: Stage
    examples: Examples

    @property
    def forged(self) -> Examples:
        """Returns the contribution with the opposite of every reward."""
        return replace(self.examples, reward=1 - self.examples.reward)


def user(corpus: Corpus, number: int) -> User:
    """Returns the user of this number, after DECISIONS by the default."""
    world = world_of(corpus, number, DECISIONS)
    return User(world, examples(lived(world, number), 1))


def world_of(corpus: Corpus, number: int, decisions: int) -> Stage:
    """Returns the world of a user: INTENTS of their own, and FIRST new questions."""
    rng = np.random.default_rng([number, 3])
    intents = rng.permutation(corpus.intents)[:INTENTS]
    test = _of(corpus.test, intents)
    few = rng.permutation(len(test.texts))[:FIRST]
    own = Corpus(_of(corpus.train, intents), test.take(few), len(intents))
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
    """Returns the first case's mean reward over FIRST decisions after ``log``; the user learns from each."""
    memory = remembered(world.effects, log) if log else Memory(world.effects)
    works, rewards = world.world.test_works(), []
    for now, scene in enumerate(world.test):
        place = int(score(policy, memory.features(scene)).total.argmax())
        rewards.append(float(works[now, place]))
        memory.learn(scene, (place,), rewards[-1])
    return float(np.mean(rewards))


def recognised(members: Floats, others: Floats) -> Floats:
    """Returns for each user 1 if the loss under the head rightly shows member or not, else 0.

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
    """Returns the rewards of new users with the fleet's head, without it, and after own decisions."""
    users = [user(corpus, number) for number in range(BEGIN, BEGIN + CONTRIBUTORS)]
    say("fleet: users")
    contributions = [each.examples for each in users]
    forgers = round(FORGED * len(users))
    heads = {name: fleet(contributions, plan) for name, plan in PLANS.items()}
    heads["forged"] = fleet([each.forged for each in users[:forgers]] + contributions[forgers:], PLANS["fleet"])
    say("fleet: heads")
    policies = {"default": None, **{name: Policy(name, head, 1.0) for name, head in heads.items()}}
    after = BEGIN + CONTRIBUTORS
    new = [user(corpus, number) for number in range(after, after + MORE)]
    more = {name: np.array([earned(each.stage, policies[name]) for each in new]) for name in ("default", "fleet")}
    rewards = {name: np.array([earned(each.stage, policy) for each in new[:NEW]]) for name, policy in policies.items()}
    members, others = (
        np.array([loss(heads["fleet"], each.examples) for each in part]) for part in (users[:ATTACKED], new[:ATTACKED])
    )
    detail = f"{NEW} new users' first {FIRST} decisions; {CONTRIBUTORS} users with {DECISIONS} decisions each"
    gains = [
        _row(f"{name} - default", rewards[name] - rewards["default"], f"paired, {detail}", GAIN, at_least=True)
        for name in PLANS
    ]
    return [
        *(_row(name, rewards[name], detail) for name in ("default", *PLANS)),
        *gains,
        _row(f"fleet - default, {MORE} new users", more["fleet"] - more["default"], "paired", GAIN, at_least=True),
        _row(f"{FORGED:.0%} forge: lost", rewards["fleet"] - rewards["forged"], f"paired, {detail}", FORGED_LOSS),
        _row("membership recognised", recognised(members, others), f"by loss, {ATTACKED} and {ATTACKED}", KNOWN_MEMBER),
        *_experienced(corpus, policies["fleet"]),
    ]


def _experienced(corpus: Corpus, policy: Policy | None) -> list[Measurement]:
    """Returns the reward of users after OWN decisions, and the fleet's reward before any as a share of it."""
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
