"""The Q-network as it serves: numpy only, an ensemble of small heads on numeric features.

Q(s, c) = sigmoid(query part(s) + prior(c) + case part(c)). The query part says how hard the task is; it is the same
for every candidate and left out of the ranking. The prior is the untrained default's log odds, and the case part is
a residual on it whose output layer begins at zero: untrained, the order is the default's exactly.
"""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

FARTHEST = 5.0
"""Standard deviations from the centre beyond which an input counts as there: one odd number must not decide."""


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """The weights; M members of the ensemble, D inputs of a case, G of a query, H hidden units (0: linear).

    Attributes:
        centre, scale: (D,), what standardises a case's inputs.
        linear: (M, D).
        hidden, hidden_bias, output: (M, D, H), (M, H), (M, H): a residual beside the linear part.
        query_centre, query_scale: (G,).
        query_linear, query_bias: (M, G), (M,).
    """

    centre: Array
    scale: Array
    linear: Array
    hidden: Array
    hidden_bias: Array
    output: Array
    query_centre: Array
    query_scale: Array
    query_linear: Array
    query_bias: Array

    def case_part(self, inputs: Array) -> Array:
        """Returns each member's residual for each candidate, (M, n), from inputs (n, D)."""
        x = standardised(inputs, self.centre, self.scale)
        part = self.linear @ x.T
        if self.output.size:
            hidden = np.tanh(x @ self.hidden + self.hidden_bias[:, None, :])  # (M, n, H)
            part = part + (hidden @ self.output[:, :, None])[:, :, 0]
        return np.asarray(part, dtype=np.float32)

    def query_part(self, inputs: Array) -> Array:
        """Returns each member's log odds of a reward whatever the case, (M, n), from inputs (n, G)."""
        x = standardised(inputs, self.query_centre, self.query_scale)
        return np.asarray(self.query_linear @ x.T + self.query_bias[:, None], dtype=np.float32)

    def arrays(self) -> dict[str, Array]:
        """Returns the weights by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def untrained(inputs: int, query_inputs: int, members: int = 1, hidden: int = 0) -> Head:
    """Returns the head that changes nothing: every residual is zero."""

    def zeros(*shape: int) -> Array:
        return np.zeros(shape, dtype=np.float32)

    return Head(
        centre=zeros(inputs),
        scale=zeros(inputs) + 1,
        linear=zeros(members, inputs),
        hidden=zeros(members, inputs, hidden),
        hidden_bias=zeros(members, hidden),
        output=zeros(members, hidden),
        query_centre=zeros(query_inputs),
        query_scale=zeros(query_inputs) + 1,
        query_linear=zeros(members, query_inputs),
        query_bias=zeros(members),
    )


def standardised(inputs: Array, centre: Array, scale: Array) -> Array:
    """Returns the inputs in standard deviations from the centre, at most FARTHEST from it."""
    return np.asarray(np.clip((inputs - centre) / scale, -FARTHEST, FARTHEST), dtype=np.float32)
