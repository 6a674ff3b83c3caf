"""What retrieval needs from the outside and does not own."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
"""One row a text, (n, dimension), each row of Euclidean length 1."""


class Embedder(Protocol):
    """Turns texts into unit vectors of one space."""

    @property
    def model(self) -> str:
        """Name of the vector space; stored beside each vector, and vectors of two models never meet."""

    @property
    def dimension(self) -> int:
        """Length of each vector."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Returns the texts' unit vectors, (len(texts), dimension), in the order of the texts.

        Raises:
            EmbedderUnavailable: no answer in time, or a refusal.
            EmbedderMisbehaved: an answer with the wrong count, order, dimension or numbers.
        """
