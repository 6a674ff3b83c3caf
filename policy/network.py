"""The Q-network, which predicts rewards: an ensemble of linear heads on numeric features, in numpy.

Q(s, c) = sigmoid(query part(s) + sharpness * (prior(c) + case part(c))). The query part says how hard the task is; it
is the same for every candidate and left out of the ranking. The prior is the untrained default's log odds, and the case
part is a residual on it that begins at zero: untrained, the order is the default's exactly. The sharpness
says how much prior and case part show in the outcomes (one number, as in Platt 1999): if it were fixed, a head whose
outcomes are mostly luck would have to unlearn the order itself to become less sure of it.
"""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

CLIP_SD = 5.0
"""Number of standard deviations from the centre at which an input is clipped, so that one odd number cannot decide."""


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """The network's weights, for M members of the ensemble, D inputs of a case and G inputs of a query.

    Attributes:
        centre, scale: (D,), mean and standard deviation by which a case's inputs are standardised.
        linear: (M, D), each member's weights of the case part.
        query_centre, query_scale: (G,), mean and standard deviation by which a query's inputs are standardised.
        query_linear, query_bias: (M, G) and (M,), each member's weights of the query part.
        log_sharpness: (M,), logarithm of each member's sharpness, the factor of prior and case part; 0 before training.
    """

    centre: Array
    scale: Array
    linear: Array
    query_centre: Array
    query_scale: Array
    query_linear: Array
    query_bias: Array
    log_sharpness: Array

    def case_part(self, inputs: Array) -> Array:
        """Returns each member's case part (the learned log odds) for each candidate, (M, n), from inputs (n, D)."""
        x = standardised(inputs, self.centre, self.scale)
        return np.asarray(self.linear @ x.T, dtype=np.float32)

    def credited(self, inputs: Array, credit: Array) -> Array:
        """Returns each member's case part of n slates of K places, (M, n): the sum over places, weighted by credit."""
        n, places, width = inputs.shape
        part = self.case_part(inputs.reshape(n * places, width)).reshape(len(self.linear), n, places)
        return np.asarray((credit * part).sum(axis=2), dtype=np.float32)

    def query_part(self, inputs: Array) -> Array:
        """Returns each member's query part, (M, n), the log odds that a query's cases share, from inputs (n, G)."""
        x = standardised(inputs, self.query_centre, self.query_scale)
        return np.asarray(self.query_linear @ x.T + self.query_bias[:, None], dtype=np.float32)

    @property
    def is_finite(self) -> bool:
        """True if every weight of the network is finite."""
        return all(np.isfinite(array).all() for array in self.arrays().values())

    def log_odds(self, inputs: Array, odds: Array) -> Array:
        """Returns each member's log odds of a reward, (M, n).

        Args:
            inputs: (n, G) or (1, G), inputs of the query part.
            odds: (n,) or (M, n), prior plus case part, of one case or credited over a slate.
        """
        return np.asarray(self.query_part(inputs) + np.exp(self.log_sharpness)[:, None] * odds, dtype=np.float32)

    def arrays(self) -> dict[str, Array]:
        """Returns the head's weights by their names."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def untrained(inputs: int, query_inputs: int, members: int = 1) -> Head:
    """Returns a head whose case part is zero for every input, so that it keeps the default's order."""

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
    )


def standardised(inputs: Array, centre: Array, scale: Array) -> Array:
    """Returns the inputs as numbers of standard deviations from the centre, clipped at CLIP_SD on either side."""
    return np.asarray(np.clip((inputs - centre) / scale, -CLIP_SD, CLIP_SD), dtype=np.float32)
