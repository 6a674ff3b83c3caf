"""Memory of a made-up service: scenes, and the features that rewarded decisions add.

All inputs of a policy go through the product: the candidates' own record, ``policy.evidence``,
``policy.experience`` over the uses on the nearest of the latest decisions, and ``policy.features.matrix``, which rounds
as the log does.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policy import evidence, experience, features
from policy.logged import Floats, Ints
from policy.slate import Field, Slate, field_of
from retrieval.search.profile_settings import LATEST
from retrieval.search.reuse_history import NEAREST, RECENT

_COUNT = features.OWN.index("reuse_count")
_USUAL = features.OWN.index("usual_reward")


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """One query with its n candidates, before anything was learned.

    Attributes:
        query: number of the query; decisions on one query are drawn and split together.
        vector: (dimension,), vector of the query, unit length or zero.
        case: (n,), the candidates' places in the bank.
        own: (n, len(features.OWN)), the candidates' own features without any reuse.
        cases: the candidates in the form of ``policy.evidence``.
        peers: (n, len(evidence.NAMES)), evidence of similar runs on each.
        group, source: (n,), the candidates' groups and sources for the rules of a slate.
    """

    query: int
    vector: Floats
    case: Ints
    own: NDArray[np.float32]
    cases: evidence.Cases
    peers: NDArray[np.float32]
    group: NDArray[np.int16]
    source: NDArray[np.int16]

    def field(self, seen: features.Features) -> Field:
        """Returns the field of a slate's rules, from the scene's features."""
        return field_of(seen, self.group, self.source, None)


def alike(slate: Slate) -> Floats:
    """Returns equal shares of a slate's places, (k,), for an unknown use."""
    return np.full(len(slate), 1 / max(len(slate), 1))


class Memory:
    """Each case's record of reuse, and the uses on past states; of one profile, as of one moment."""

    def __init__(self, effects: Floats, past: Iterable[tuple[Scene, Slate, float, Floats]] = ()) -> None:
        """Takes each case's plan, (cases, tools), and the decisions so far with their rewards and shares."""
        self._effects = effects
        self._count = np.zeros(len(effects))
        self._vectors = np.zeros((RECENT, 0))
        self._slates: list[Ints] = []
        self._shares: list[Floats] = []
        self._rewards: list[float] = []
        for scene, slate, reward, share in past:
            self.learn(scene, slate, reward, share)

    def learn(self, scene: Scene, slate: Slate, reward: float, share: Floats | None = None) -> None:
        """Adds one rewarded decision, with each place's share of the outcome, (k,); None: all share alike.

        The backend did not name used cases, so the reward proves none (``writer.rewards.proof``).
        """
        used = scene.case[list(slate)]
        share = alike(slate) if share is None else share
        self._count[used] += share
        self._shares.append(share)
        if not self._rewards:
            self._vectors = np.zeros((RECENT, len(scene.vector)))
        self._vectors[len(self._rewards) % RECENT] = scene.vector
        self._slates.append(used)
        self._rewards.append(reward)

    def features(self, scene: Scene) -> features.Features:
        """Returns the scene's features at this moment, as the log has them."""
        own = scene.own.copy()
        own[:, _COUNT] = self._count[scene.case]
        own[:, _USUAL] = np.mean(self._rewards[-LATEST:]) if self._rewards else np.nan
        return features.matrix(own, scene.peers, experience.features(scene.cases, self._past(scene)))

    def _past(self, scene: Scene) -> experience.ReuseHistory:
        """Returns the uses on the NEAREST of the RECENT decisions, as the service's own statement does."""
        if not self._rewards:
            return experience.no_history(self._effects.shape[1])
        first = max(0, len(self._rewards) - RECENT)
        recent = np.arange(first, len(self._rewards))
        similarity = (self._vectors[: len(recent)] @ scene.vector)[recent % RECENT]
        near = np.argsort(-similarity, kind="stable")[:NEAREST]
        slates = [self._slates[first + row] for row in near]
        sizes = np.array([len(slate) for slate in slates])
        used = np.concatenate(slates).astype(np.int64)
        place = np.full(len(self._effects), -1, np.int64)
        place[scene.case] = np.arange(len(scene.case))
        return experience.ReuseHistory(
            similarity=np.repeat(similarity[near], sizes),
            reward=np.repeat(np.array(self._rewards[first:])[near], sizes),
            credit=np.concatenate([self._shares[first + row] for row in near]),
            effects=self._effects[used],
            candidate=place[used],
        )
