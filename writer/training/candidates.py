"""Trains candidates, policies for a trial, of all due profiles at once; each is measured before it is stored."""

import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from sqlalchemy.exc import IntegrityError

from policy import features
from policy.decide import Policy
from policy.examples import Examples, split
from policy.fit import FIRST_ORDER
from policy.held_out import held_out_log_loss
from policy.inputs import CASE, QUERY
from policy.network import Head, untrained
from policy.weights import pack
from retrieval.database.database import Database
from retrieval.errors import UserErased
from retrieval.ranking.policies import DIFFERS
from writer.profiles import Profile, each_of, in_every_profile
from writer.training import lifecycle
from writer.training.decision_log import read
from writer.training.result import TrainingOutcome, TrainingResult
from writer.training.training_data import differing
from writer.training.trial import policy_in

HELD_OUT = 0.2
COMPARED = 200
"""Number of the latest decisions on which a candidate's slates are compared with the slates that are served now."""
LEAST_DIFFERENT = 0.1
"""Least share of these decisions on which a candidate's slate differs; with less, a trial costs more than it wins."""

HALF = 100.0
"""Number of decisions at which the head has half of its full weight: the n0 of n / (n + n0)."""
MEMBERS = 5
"""Number of networks in a head, which is an ensemble."""


@dataclass(frozen=True, slots=True, eq=False)
class Learner:
    """A profile that is due for training, with the examples from its log of decisions."""

    profile: Profile
    examples: Examples


TrainHeads = Callable[[Sequence[Examples], Sequence[int], Head], list[Head]]
"""Function that trains heads, the learned parts of policies: from each profile's examples and seed, and one start."""


@dataclass(frozen=True, slots=True)
class Demand:
    """The log that a profile needs before a candidate is trained.

    Attributes:
        decisions: number of rewarded decisions, of the current version of the features.
        fresh: number of such decisions since the last training.
    """

    decisions: int = 100
    fresh: int = 50


@dataclass(frozen=True, slots=True)
class Recipe:
    """The settings of a night's training.

    Attributes:
        seed: seed of all random numbers; the same seed and logs give the same weights.
        first_order: order of cases that a profile uses until its replay finds a better order.
    """

    train_heads: TrainHeads
    demand: Demand = field(default_factory=Demand)
    seed: int = 0
    first_order: str = FIRST_ORDER


async def train_candidates(database: Database, due: Sequence[Learner], recipe: Recipe) -> AsyncIterator[TrainingResult]:
    """Trains a candidate for every due profile, all at once, and yields each profile's result.

    A head that is trained on the earlier decisions is measured on the later ones; the candidate is trained on all.

    Raises:
        DatabaseUnavailable, Exception: see ``in_every_profile``; the candidates of the other profiles are stored.
    """
    start = untrained(len(CASE), len(QUERY), MEMBERS)
    seeds = [seed_of(each.profile, recipe.seed) for each in due]
    late = [split(each.examples.group, HELD_OUT) for each in due]
    earlier = recipe.train_heads(
        [each.examples.take(~rows) for each, rows in zip(due, late, strict=True)], seeds, start
    )
    heads = recipe.train_heads([each.examples for each in due], seeds, start)
    trained = {
        each.profile: (each, each.examples.take(rows), head, measured)
        for each, rows, head, measured in zip(due, late, heads, earlier, strict=True)
    }

    async def store(profile: Profile) -> TrainingResult:
        return await _store(database, *trained[profile])

    async for result in in_every_profile(database, store, each_of(trained)):
        yield result


async def _store(
    database: Database, learner: Learner, held_out: Examples, head: Head, measured: Head
) -> TrainingResult:
    """Stores a trained policy as a candidate, or as rejected, and returns the profile's result.

    Args:
        database: the database.
        learner: the profile and all its examples.
        held_out: the examples on which ``measured`` was not trained.
        head: the head of the policy, trained on all examples.
        measured: the head that was trained on the other examples.
    """
    profile, count = learner.profile, len(learner.examples)
    user_sub, agent_key = profile.user_sub, profile.agent_key
    if not (head.is_finite and measured.is_finite):
        return TrainingResult(user_sub, agent_key, "diverged", decisions=count)
    blend = count / (count + HALF)
    loss = held_out_log_loss(held_out, measured, blend)
    try:
        async with database.as_user(user_sub, profile.seen_at) as connection:
            live = await lifecycle.live_policies(connection, user_sub, agent_key)
            log = await read(connection, user_sub, agent_key, COMPARED)
        serving = next((row for row in live if row.status == "serving"), None)
        differs = differing(log, Policy("", head, blend), policy_in(serving))
        outcome: TrainingOutcome = "candidate"
        if differs < LEAST_DIFFERENT:
            outcome = "serves nearly the same slates"
        elif loss["log_loss_gain"] < -2 * loss["log_loss_gain_error"]:
            outcome = "worse than the default on held-out decisions"
        metrics = {**loss, DIFFERS: differs}
        weights, checksum = pack(head, features.VERSION)
        new = {
            "status": "candidate" if outcome == "candidate" else "rejected",
            "feature_version": features.VERSION,
            "weights": weights,
            "checksum": checksum,
            "blend": blend,
            "decisions": count,
            "metrics": metrics,
        }
        async with database.as_user(user_sub, profile.seen_at) as connection:
            version = await lifecycle.add(connection, user_sub, agent_key, new)
    except UserErased:
        return TrainingResult(user_sub, agent_key, "erased")
    except IntegrityError:
        return TrainingResult(user_sub, agent_key, "another trainer was first")
    return TrainingResult(user_sub, agent_key, outcome, version, count, metrics=metrics)


def seed_of(profile: Profile, seed: int) -> int:
    """Returns a seed for a profile, derived from the night's seed, so that other profiles do not change its weights."""
    digest = f"{seed}\n{profile.user_sub}\n{profile.agent_key}".encode()
    return int.from_bytes(hashlib.sha256(digest).digest()[:6], "big")
