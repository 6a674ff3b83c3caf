"""The Q-network as it serves: numpy only, an ensemble of linear heads on numeric features.

Q(s, c) = sigmoid(query part(s) + sharpness * (prior(c) + case part(c))). The query part says how hard the task is; it
is the same for every candidate and left out of the ranking. The prior is the untrained default's log odds, and the case
part is a residual on it that begins at zero: untrained, the order is the default's exactly. The sharpness
says how much of either shows in the outcomes (one number, as in Platt 1999): were it fixed, a head whose outcomes are
mostly luck would have to unlearn the order itself to become less sure of it.
"""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

NEVER = -1e9
"""Log odds that stand for minus infinity: the empty slate never wins, for a head that has not seen any."""
CLIP_SD = 5.0
"""Standard deviations from the centre beyond which an input counts as there: one odd number must not decide."""


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """The weights; M members of the ensemble, D inputs of a case, G of a query.

    Attributes:
        centre, scale: (D,), what standardises a case's inputs.
        linear: (M, D).
        query_centre, query_scale: (G,).
        query_linear, query_bias: (M, G), (M,).
        log_sharpness: (M,), 0 at the start.
        null: (M,), log odds of an empty slate beside the query part, NEVER at the start: what a slate must beat.
    """

    centre: Array
    scale: Array
    linear: Array
    query_centre: Array
    query_scale: Array
    query_linear: Array
    query_bias: Array
    log_sharpness: Array
    null: Array

    def case_part(self, inputs: Array) -> Array:
        """Returns each member's residual for each candidate, (M, n), from inputs (n, D)."""
        x = standardised(inputs, self.centre, self.scale)
        return np.asarray(self.linear @ x.T, dtype=np.float32)

    def credited(self, inputs: Array, credit: Array) -> Array:
        """Returns each member's case part of n slates of K places, (M, n), from (n, K, D) and (n, K)."""
        n, places, width = inputs.shape
        part = self.case_part(inputs.reshape(n * places, width)).reshape(len(self.linear), n, places)
        return np.asarray((credit * part).sum(axis=2), dtype=np.float32)

    def query_part(self, inputs: Array) -> Array:
        """Returns each member's log odds of a reward whatever the case, (M, n), from inputs (n, G)."""
        x = standardised(inputs, self.query_centre, self.query_scale)
        return np.asarray(self.query_linear @ x.T + self.query_bias[:, None], dtype=np.float32)

    @property
    def values_empty(self) -> bool:
        """True if it has a value for the empty slate."""
        return bool((self.null > NEVER).all())

    @property
    def is_finite(self) -> bool:
        """True if every weight is finite."""
        return all(np.isfinite(array).all() for array in self.arrays().values())

    def log_odds(self, inputs: Array, odds: Array, empty: NDArray[np.bool_] | None = None) -> Array:
        """Returns each member's log odds of a reward, (M, n), from query inputs (n, G) or (1, G).

        ``odds``, (n,) or (M, n), are prior and case part together, of one case or credited over a slate; where the
        slate is ``empty``, (n,), and the head knows what that is worth, they do not count.
        """
        shown = self.shown(odds)
        if empty is not None and self.values_empty:
            shown = np.where(empty, self.null[:, None], shown)
        return np.asarray(self.query_part(inputs) + shown, dtype=np.float32)

    def shown(self, odds: Array) -> Array:
        """Returns how much of prior and case part shows in the outcome, (M, n): what ``null`` is to be held against."""
        return np.asarray(np.exp(self.log_sharpness)[:, None] * odds, dtype=np.float32)

    def arrays(self) -> dict[str, Array]:
        """Returns the weights by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def untrained(inputs: int, query_inputs: int, members: int = 1) -> Head:
    """Returns the head that changes nothing: every residual is zero."""

    def zeros(*shape: int) -> Array:
        return np.zeros(shape, dtype=np.float32)

    return Head(
        centre=zeros(inputs),
        scale=zeros(inputs) + 1,
        linear=zeros(members, inputs),
        query_centre=zeros(query_inputs),
        query_scale=zeros(query_inputs) + 1,
        query_linear=zeros(members, query_inputs),
        query_bias=zeros(members),
        log_sharpness=zeros(members),
        null=zeros(members) + np.float32(NEVER),
    )


def standardised(inputs: Array, centre: Array, scale: Array) -> Array:
    """Returns the inputs in standard deviations from the centre, at most CLIP_SD from it."""
    return np.asarray(np.clip((inputs - centre) / scale, -CLIP_SD, CLIP_SD), dtype=np.float32)
