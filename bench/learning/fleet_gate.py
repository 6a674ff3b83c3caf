"""Benchmark 3, for a fleet: whole trials of one policy over many users' logs, in made-up worlds of known truth.

Every user has queries of their own, and what the policy is worth differs by user. The logs are judged every night by
``writer.training.fleet.verdict_on``, as the product's are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bench.learning.canary import canary
from bench.learning.trials import (
    HARM,
    NIGHTS,
    PROMOTED_IF_NO_BETTER,
    PROMOTED_IF_WINNER,
    SETTINGS,
    SOON,
    UPLIFT,
    Ended,
    as_served,
    futile_row,
    promoted_row,
)
from bench.measure import Measurement
from policy.decide import Budget
from policy.gate import worse_than_default
from policy.inputs import QUERY
from policy.logged import Floats, Logged
from writer.training.fleet import LEAVING, Witness, verdict_on

TRIALS = 100
USERS, DECISIONS = 130, 30
"""Users of one trial; together they have the decisions of the longest trial, less one night's."""
SPREAD = 0.1
"""Distance from the mean gain: above it for half of the users, below it for the others."""
WORSE = -0.2
"""Loss by the policy in a profile that should leave it."""
LOGS = (30, 300, 1_000)
"""Decisions of such a profile."""


@dataclass(frozen=True, slots=True)
class World:
    """Worth of a fleet's policy: its mean, and the users' distance from it."""

    uplift: float
    spread: float = SPREAD


def run(seed: int, trials: int = TRIALS) -> list[Measurement]:
    """Returns the outcomes of trials of each kind, and the share of single profiles that leave the serving policy."""
    no_better = lives(World(0.0), seed, trials)
    harmful = lives(World(HARM), seed + 1, trials)
    winner = lives(World(UPLIFT), seed + 2, trials)
    soon = sum(each.promoted and each.at <= SOON for each in winner)
    detail = f"{soon} of {trials} trials; by {USERS * DECISIONS:,}: {sum(each.promoted for each in winner)}"
    share = 100 * soon / trials
    return [
        promoted_row(f"no better on average, {SPREAD:+.2f} for half: ever promoted", no_better, PROMOTED_IF_NO_BETTER),
        futile_row("no better on average", no_better),
        promoted_row(f"harmful {HARM:+.2f}: ever promoted", harmful, 0.0),
        futile_row(f"harmful {HARM:+.2f}", harmful),
        Measurement(
            f"winner {UPLIFT:+.2f}: promoted by {SOON:,} decisions",
            share,
            "%",
            detail,
            PROMOTED_IF_WINNER,
            at_least=True,
        ),
        *(_left(uplift, decisions, seed + 3, trials) for uplift in (0.0, WORSE) for decisions in LOGS),
    ]


def lives(world: World, seed: int, trials: int) -> list[Ended]:
    """Returns the outcomes of independent trials of a fleet's policy."""
    return [lived(witnesses(world, rng)) for rng in np.random.default_rng(seed).spawn(trials)]


def lived(heard: Sequence[Witness]) -> Ended:
    """Returns the outcome of a trial with a look every night."""
    when = np.sort(np.concatenate([each.at for each in heard]))
    nights = [night for night in NIGHTS if night <= len(when)]
    for night in nights:
        outcome = verdict_on([until(each, when[night - 1]) for each in heard], SETTINGS).outcome
        if outcome != "insufficient evidence":
            return Ended(outcome, night)
    return Ended("keep", nights[-1])


def witnesses(world: World, rng: np.random.Generator, users: int = USERS) -> list[Witness]:
    """Returns the logs of one trial's users, whose decisions fall together in time."""
    return [witness(world.uplift + world.spread * (-1) ** number, number, rng) for number in range(users)]


def witness(uplift: float, number: int, rng: np.random.Generator) -> Witness:
    """Returns one user's log, in a world where the policy has this worth."""
    log = canary(replace(as_served(uplift=uplift), decisions=DECISIONS), rng)
    decisions = replace(log.logged, group=np.full(DECISIONS, number), covariates=_covariates(log.logged))
    return Witness("", np.sort(rng.random(DECISIONS)), decisions, log.contest, [])


def until(heard: Witness, end: float) -> Witness:
    """Returns the witness's log until that time."""
    rows = heard.at <= end
    contest = type(heard.contest)(*(target.take(rows) for target in heard.contest.named().values()))
    return replace(heard, at=heard.at[rows], log=heard.log.take(rows), contest=contest)


def _covariates(log: Logged) -> Floats:
    """Returns features with the hint of a query's difficulty as its best similarity, all else unknown."""
    result = np.zeros((len(log.reward), len(QUERY)))
    if log.covariates is not None:
        result[:, QUERY.index("top_similarity")] = log.covariates[:, 0]
    return result


def _left(uplift: float, decisions: int, seed: int, profiles: int) -> Measurement:
    """Returns the number of profiles whose log shows the serving policy worse than the default."""
    serves = replace(as_served(uplift=uplift), decisions=decisions, share=1 - Budget().kept)
    logs = [canary(serves, rng) for rng in np.random.default_rng(seed).spawn(profiles)]
    left = sum(worse_than_default(log.logged, log.contest.candidate, log.contest.default, LEAVING) for log in logs)
    name = f"a profile where it is worth {uplift:+.2f}, {decisions:,} decisions: left"
    detail = f"{left} of {profiles} profiles; {Budget().kept:.0%} of their decisions stay with the default"
    return Measurement(name, 100 * left / profiles, "%", detail, PROMOTED_IF_NO_BETTER if uplift == 0 else None)
