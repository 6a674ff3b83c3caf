"""Ports of retrieval: the embedder and the language model."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, JsonValue

from policy.channels import normalised
from retrieval.errors import EmbedderMisbehaved, EmbedderRefused, EmbedderUnavailable, TextNotEmbeddable, Tokens
from retrieval.tasks import is_cancelled

Vector = NDArray[np.float32]
"""Vector of one text, (dimension,), of Euclidean length 1."""

Vectors = NDArray[np.float32]
"""Vectors of n texts, (n, dimension), each row of Euclidean length 1."""


class Embedder(Protocol):
    """Turns texts into unit vectors, which can be compared with each other."""

    @property
    def model(self) -> str:
        """Name of the embedder's vector space, stored with each vector: only vectors of one space are compared.

        Vectors of another dimension are another space, with another name.
        """

    @property
    def dimension(self) -> int:
        """Number of elements of each of the embedder's vectors."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Returns the texts' unit vectors, (len(texts), dimension), in the order of the texts.

        Every row is finite and of length 1; no row of NaN or zeros stands for a text without a vector. If a text is
        blank, no text is embedded or sent; `embed_each` leaves blank texts out.

        Raises:
            TextNotEmbeddable: some texts are blank; the error has their indices.
            EmbedderUnavailable, EmbedderRefused: no answer in time, or a refusal.
            EmbedderMisbehaved: an answer with the wrong count, order, dimension or numbers.
        """

    async def aclose(self) -> None:
        """Releases the embedder's connections; it cannot be used afterwards."""


def embedder_inputs(texts: Sequence[str], max_chars: int) -> list[str]:
    """Returns the texts in a form that every embedder takes: stripped, at most `max_chars` characters, valid Unicode.

    Raises:
        TextNotEmbeddable: some texts are blank.
    """
    stripped = [text.strip()[:max_chars] for text in texts]
    if blank := [index for index, text in enumerate(stripped) if not text]:
        raise TextNotEmbeddable(blank)
    # A lone surrogate (half an emoji, cut by somebody) has no UTF-8 form, and tokenizers and JSON both need one.
    return [text.encode(errors="replace").decode() for text in stripped]


async def embed_each(embedder: Embedder, texts: Sequence[str]) -> list[Vector | None]:
    """Returns a unit vector for each text, in the order of the texts; None for a text that cannot be embedded.

    Each text is normalised first.

    Raises:
        EmbedderUnavailable: no answer in time, or the embedder rejects a harmless text as well.
        EmbedderRefused, EmbedderMisbehaved: the embedder rejects one of the texts, by a refusal or a wrong answer.
    """
    texts = [normalised(text) for text in texts]
    try:
        try:
            return list(await embedder.embed(texts))
        except TextNotEmbeddable as error:
            rest = [index for index in range(len(texts)) if index not in error.indices]
        vectors = dict(zip(rest, await embedder.embed([texts[index] for index in rest]), strict=True))
        return [vectors.get(index) for index in range(len(texts))]
    except (EmbedderRefused, EmbedderMisbehaved):
        if is_cancelled():
            raise  # the embedder may have turned the cancellation into the error
        try:
            await embedder.embed([_HARMLESS])
        except (EmbedderRefused, EmbedderMisbehaved) as error:
            raise EmbedderUnavailable(str(error)) from error  # the fault is no text's
        raise


async def embed_accepted(embedder: Embedder, texts: Sequence[str]) -> list[Vector | None]:
    """Returns what `embed_each` returns, and None for a text that the embedder rejects even alone, too.

    Raises:
        EmbedderUnavailable: no answer in time, or the embedder rejects a harmless text as well.
    """
    with suppress(EmbedderRefused, EmbedderMisbehaved):
        return await embed_each(embedder, texts)
    vectors: list[Vector | None] = []
    for text in texts:
        try:
            vectors += await embed_each(embedder, [text])
        except (EmbedderRefused, EmbedderMisbehaved):
            vectors.append(None)
    return vectors


_HARMLESS = "The sun is shining."
"""Text that every embedder takes that is well."""


Answer = TypeVar("Answer", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Reply(Generic[Answer]):
    """A language model's validated answer, and its cost in tokens."""

    answer: Answer
    tokens: Tokens


class Model(Protocol):
    """A language model that answers in a given form, with its own limits of time and length."""

    async def ask(self, instructions: str, material: JsonValue, answer: type[Answer]) -> Reply[Answer]:
        """Returns the model's answer to the instructions.

        ``material`` is data that the caller has redacted. The prompt says so, and no text in it can end it.

        Raises:
            ModelUnavailable, ModelRefused: no answer in time, or a refusal.
            ModelMisbehaved: no valid answer, not even after a second request with the error.
            ModelBudgetSpent: the budget of a metered model is used up.
        """
        ...
