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
"""Of one trial; together as many decisions as a trial may last, but for a night's."""
SPREAD = 0.1
"""Half of the users gain so much more than the others' mean, half so much less."""
WORSE = -0.2
"""What the policy costs in a profile that should leave it."""
LOGS = (30, 300, 1_000)
"""Decisions of such a profile."""


@dataclass(frozen=True, slots=True)
class World:
    """What a fleet's policy is worth: on average, and how far users lie from it."""

    uplift: float
    spread: float = SPREAD


def run(seed: int, trials: int = TRIALS) -> list[Measurement]:
    """Returns what became of trials of each kind, and which single profiles leave what serves."""
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
    """Returns how independent trials of a fleet's policy ended."""
    return [lived(witnesses(world, rng)) for rng in np.random.default_rng(seed).spawn(trials)]


def lived(heard: Sequence[Witness]) -> Ended:
    """Returns how a trial ended that was looked at every night."""
    when = np.sort(np.concatenate([each.at for each in heard]))
    nights = [night for night in NIGHTS if night <= len(when)]
    for night in nights:
        outcome = verdict_on([until(each, when[night - 1]) for each in heard], SETTINGS).outcome
        if outcome != "insufficient evidence":
            return Ended(outcome, night)
    return Ended("keep", nights[-1])


def witnesses(world: World, rng: np.random.Generator, users: int = USERS) -> list[Witness]:
    """Returns what the users of one trial say, whose decisions fall together in time."""
    return [witness(world.uplift + world.spread * (-1) ** number, number, rng) for number in range(users)]


def witness(uplift: float, number: int, rng: np.random.Generator) -> Witness:
    """Returns what one user says, in whose world the policy is worth this."""
    log = canary(replace(as_served(uplift=uplift), decisions=DECISIONS), rng)
    decisions = replace(log.logged, group=np.full(DECISIONS, number), covariates=_covariates(log.logged))
    return Witness("", np.sort(rng.random(DECISIONS)), decisions, log.contest, [])


def until(heard: Witness, end: float) -> Witness:
    """Returns what the witness could say by that time."""
    rows = heard.at <= end
    contest = type(heard.contest)(*(target.take(rows) for target in heard.contest.named().values()))
    return replace(heard, at=heard.at[rows], log=heard.log.take(rows), contest=contest)


def _covariates(log: Logged) -> Floats:
    """Returns the hint of a query's difficulty in the place of its best similarity, all else unknown."""
    result = np.zeros((len(log.reward), len(QUERY)))
    if log.covariates is not None:
        result[:, QUERY.index("top_similarity")] = log.covariates[:, 0]
    return result


def _left(uplift: float, decisions: int, seed: int, profiles: int) -> Measurement:
    """Returns in how many profiles the log shows the policy that serves worse than the default."""
    serves = replace(as_served(uplift=uplift), decisions=decisions, share=1 - Budget().kept)
    logs = [canary(serves, rng) for rng in np.random.default_rng(seed).spawn(profiles)]
    left = sum(worse_than_default(log.logged, log.contest.candidate, log.contest.default, LEAVING) for log in logs)
    name = f"a profile where it is worth {uplift:+.2f}, {decisions:,} decisions: left"
    detail = f"{left} of {profiles} profiles; {Budget().kept:.0%} of their decisions stay with the default"
    return Measurement(name, 100 * left / profiles, "%", detail, PROMOTED_IF_NO_BETTER if uplift == 0 else None)
