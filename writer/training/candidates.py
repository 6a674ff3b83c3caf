"""Trains candidates: of every profile that is due at once, each measured on its later decisions before it is stored."""

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from sqlalchemy.exc import IntegrityError

from policy import features
from policy.decide import Policy
from policy.examples import Examples, split
from policy.held_out import held_out_log_loss
from policy.inputs import factory
from policy.network import Head
from policy.weights import pack, unpack
from retrieval.database.database import Database
from retrieval.errors import UserErased
from retrieval.ranking.policies import DIFFERS
from writer.profiles import Profile
from writer.training import lifecycle, shared_prior
from writer.training.decision_log import read
from writer.training.lifecycle import NewPolicy
from writer.training.result import TrainingOutcome, TrainingResult
from writer.training.shared_prior import Start
from writer.training.training_data import differing
from writer.training.trial import policy_in

HELD_OUT = 0.2
COMPARED = 200
"""The latest decisions, on which a candidate's slates are compared with those that are served."""
LEAST_DIFFERENT = 0.1
"""On fewer of them a candidate has next to nothing to win, and its trial would cost more."""
CURVE = (0.25, 0.5, 1.0)
"""Shares of the earlier decisions at which the learning curve is measured."""


class Fit(Protocol):
    """Trains heads."""

    def __call__(
        self, profiles: Sequence[Examples], seeds: Sequence[int], start: Head, ridge: float | None = None
    ) -> list[Head]:
        """Returns a head for each set of examples, with its seed, from where it begins.

        Args:
            profiles: the examples of each.
            seeds: of each.
            start: where all begin.
            ridge: how strongly each is pulled towards ``start``, in decisions; None: it is chosen.
        """


@dataclass(frozen=True, slots=True)
class Demand:
    """What a profile must have before a candidate is trained.

    Attributes:
        decisions: rewarded ones, of this version of the features.
        fresh: of them, how many since the last training.
        half: decisions at which the learned part has half of its weight: the n0 of n / (n + n0).
        members: heads of the ensemble.
        hidden: units of the network; 0 is logistic regression.
    """

    decisions: int = 100
    fresh: int = 50
    half: float = 100.0
    members: int = 5
    hidden: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Learner:
    """A profile, and what can be learned of its log."""

    profile: Profile
    examples: Examples


@dataclass(frozen=True, slots=True)
class Learners:
    """Whose candidates are to be trained, and whose numbers may train the shared prior, due or not."""

    due: list[Learner] = field(default_factory=list)
    sharers: list[Learner] = field(default_factory=list)


async def train_candidates(
    database: Database, learners: Learners, fit: Fit, demand: Demand, seed: int
) -> AsyncIterator[TrainingResult]:
    """Trains all who are due at once: first on the earlier decisions, to be measured on the later, then on all."""
    due = learners.due
    if not due:
        return
    start = await _start(database, learners.sharers, fit, demand, seed)
    seeds = [_seed(each.profile, seed) for each in due]
    late = [split(each.examples.group, HELD_OUT) for each in due]
    earlier = [np.flatnonzero(~rows) for rows in late]
    curves: list[list[Head]] = []
    for share in CURVE:
        first = [each.examples.take(rows[: int(len(rows) * share)]) for each, rows in zip(due, earlier, strict=True)]
        curves.append(fit(first, seeds, start.head))
    heads = fit([each.examples for each in due], seeds, start.head)
    for each, rows, head, *curve in zip(due, late, heads, *curves, strict=True):
        count = len(each.examples)
        if not all(trained.is_finite for trained in (head, *curve)):
            yield TrainingResult(each.profile.user_sub, each.profile.agent_key, "diverged", decisions=count)
            continue
        blend = count / (count + demand.half)
        measured = [held_out_log_loss(each.examples.take(rows), trained, blend) for trained in curve]
        known = int((~rows).sum())
        points = [(int(known * share), at.log_loss_gain) for share, at in zip(CURVE, measured, strict=True)]
        whole, curve_points = measured[-1], [{"decisions": n, "log_loss_gain": gain} for n, gain in points]
        metrics = {**whole.as_json(), "learning_curve": curve_points}
        worse = whole.log_loss_gain < -2 * whole.log_loss_gain_error
        blob, checksum = pack(head, features.VERSION)
        status = "rejected" if worse else "candidate"
        new = NewPolicy(status, features.VERSION, blob, checksum, blend, count, metrics, start.version)
        yield await _store(database, each.profile, new)


async def _start(database: Database, sharers: Sequence[Learner], fit: Fit, demand: Demand, seed: int) -> Start:
    """Returns where heads begin: a prior of those who share their numbers now, else the last, else the factory's."""
    users: dict[str, list[Examples]] = {}
    for each in sharers:
        users.setdefault(each.profile.user_sub, []).append(each.examples)
    begin = factory(demand.members, demand.hidden)
    together = shared_prior.pool(users)
    if together is not None and len(together) >= shared_prior.FEWEST_USERS * demand.decisions:
        (head,) = fit([together], [seed], begin, shared_prior.RIDGE)
        contributors = {each.profile.user_sub: each.profile.seen_at for each in sharers}
        with suppress(UserErased, IntegrityError):  # a contributor was erased, or another trainer was first
            async with database.as_worker(contributors) as connection:
                return await shared_prior.store(connection, head, list(contributors), len(together))
    async with database.as_worker() as connection:
        return await shared_prior.latest(connection) or Start(begin)


async def _store(database: Database, profile: Profile, new: NewPolicy) -> TrainingResult:
    user_sub, agent_key = profile.user_sub, profile.agent_key
    try:
        differs = await _differs(database, profile, new)
        new = replace(
            new,
            metrics={**new.metrics, DIFFERS: differs},
            status=new.status if differs >= LEAST_DIFFERENT else "rejected",
        )
        async with database.as_user(user_sub, profile.seen_at) as connection:
            version = await lifecycle.add(connection, user_sub, agent_key, new)
    except UserErased:
        return TrainingResult(user_sub, agent_key, "erased")
    except IntegrityError:
        return TrainingResult(user_sub, agent_key, "another trainer was first")
    outcome: TrainingOutcome = "candidate"
    if new.status != "candidate":
        tried = differs >= LEAST_DIFFERENT
        outcome = "worse than the default on held-out decisions" if tried else "serves nearly the same slates"
    return TrainingResult(user_sub, agent_key, outcome, version, new.decisions, metrics=dict(new.metrics))


async def _differs(database: Database, profile: Profile, new: NewPolicy) -> float:
    """Returns on which share of the latest decisions the policy would serve another slate than is served without it."""
    async with database.as_user(profile.user_sub, profile.seen_at) as connection:
        live = await lifecycle.live_policies(connection, profile.user_sub, profile.agent_key)
        log = await read(connection, profile.user_sub, profile.agent_key, COMPARED)
    policy = Policy("", unpack(new.weights, new.checksum, new.feature_version), new.blend)
    serving = next((row for row in live if row.status == "serving" and row.stands), None)
    return differing(log, policy, policy_in(serving))


def _seed(profile: Profile, seed: int) -> int:
    """Returns a seed of the profile's own, so that no other profile's number changes its weights."""
    digest = f"{seed}\n{profile.user_sub}\n{profile.agent_key}".encode()
    return int.from_bytes(hashlib.sha256(digest).digest()[:6], "big")
