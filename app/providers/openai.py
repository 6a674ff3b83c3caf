"""Embeddings from any server that speaks OpenAI's wire format: OpenAI, vLLM, Ollama, TEI, llama.cpp."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from app.providers.wire import CHECK, Client, NoAnswer, Patience, Refused
from retrieval.errors import EmbedderMisbehaved, EmbedderRefused, EmbedderUnavailable
from retrieval.ports import Vectors, embedder_inputs

MOST_BYTES = 1 << 28
"""Maximum bytes of an answer's body."""
CHECK_DIMENSION = "check the model and CASEBANK_OPENAI_EMBEDDING_DIMENSION"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Server and model of the vectors.

    Attributes:
        base_url: address with the version, as http://localhost:8000/v1.
        dimension: length of the vectors; any other length is an error.
        ask_dimension: True: requests name the dimension, which servers refuse whose model cannot shorten vectors;
            "try": requests name it until the server refuses one.
        api_key: API key; empty for a local server.
        batch_size: texts in one request.
        max_chars: characters of a text that are sent; the rest is cut.
    """

    base_url: str
    model: str
    dimension: int
    ask_dimension: bool | Literal["try"] = False
    api_key: str = field(default="", repr=False)
    batch_size: int = 128
    max_chars: int = 8_192


class _NoAnswer(NoAnswer, EmbedderUnavailable):
    """The server gave no answer, or wants the request again later."""


class OpenAIEmbedder(Client):
    """Makes vectors of texts over HTTP, and checks every part of the server's answer."""

    what = "embedder"
    refused, unavailable, no_answer, misbehaved = EmbedderRefused, EmbedderUnavailable, _NoAnswer, EmbedderMisbehaved
    advice = CHECK | {
        400: "check the model's limit on text length (CASEBANK_OPENAI_MAX_CHARS), and whether it can shorten vectors"
        " (CASEBANK_OPENAI_ASK_DIMENSION)"
    }

    def __init__(
        self, endpoint: Endpoint, patience: Patience | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._endpoint, self.dimension = endpoint, endpoint.dimension
        self.model = f"{endpoint.model}@{endpoint.dimension}"
        """Name of the vector space: model and dimension, for vectors of two lengths cannot be compared."""
        self._ask_dimension = bool(endpoint.ask_dimension)
        super().__init__(self.model, endpoint.base_url, endpoint.api_key, patience or Patience(), clock)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Returns the texts' unit vectors, (len(texts), dimension), within `budget_s` seconds.

        Raises:
            TextNotEmbeddable: some texts are blank.
            EmbedderUnavailable: no answer in time, a refusal, or too many calls without an answer just before.
            EmbedderRefused: the server says that a text is at fault.
            EmbedderMisbehaved: an answer with the wrong shape, count, order, dimension or numbers.
        """
        inputs = embedder_inputs(texts, self._endpoint.max_chars)
        size = self._endpoint.batch_size
        batches = [inputs[start : start + size] for start in range(0, len(inputs), size)]
        rows = [np.empty((0, self.dimension), np.float32)]
        ends_at = asyncio.get_running_loop().time() + self._patience.budget_s
        async with self._call(ends_at):
            rows += [await self._embed_batch(batch, ends_at) for batch in batches]
        return np.concatenate(rows)

    async def _embed_batch(self, inputs: list[str], ends_at: float) -> Vectors:
        """Returns the vectors of one request; with `ask_dimension="try"` a refused one goes without the dimension."""
        asks = self._ask_dimension  # for this request alone: others go on beside it
        try:
            return await self._retried(partial(self._request, inputs, ends_at, asks=asks))
        except EmbedderRefused:
            if not asks or self._endpoint.ask_dimension != "try":
                raise
        vectors = await self._retried(partial(self._request, inputs, ends_at, asks=False))
        self._ask_dimension = False  # the dimension was the cause of the refusal
        return vectors

    async def _request(self, inputs: list[str], ends_at: float, *, asks: bool) -> Vectors:
        """Sends one request for the vectors of the texts, which names the dimension if ``asks``, and returns them."""
        payload: dict[str, object] = {"model": self._endpoint.model, "input": inputs, "encoding_format": "float"}
        wanted = {"dimensions": self.dimension} if asks else {}
        try:
            body = await self._post("/embeddings", payload | wanted, MOST_BYTES)
        except Refused as refusal:
            raise self._error_of(refusal, ends_at) from None
        return _vectors(body, len(inputs), self.dimension)


class _Item(BaseModel):
    model_config = ConfigDict(strict=True)
    index: int
    embedding: list[float]  # finite or not: see _unit


class _Embeddings(BaseModel):
    data: list[_Item]


def _vectors(body: bytes, count: int, dimension: int) -> Vectors:
    """Returns the answer's vectors in the requested order, (count, dimension), at length 1.

    Raises:
        EmbedderMisbehaved: the answer is not the agreed JSON, or has the wrong count, order, dimension or numbers.
    """
    try:
        items = sorted(_Embeddings.model_validate_json(body).data, key=lambda item: item.index)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "the body"
        raise EmbedderMisbehaved(f"not an embeddings answer: {first['type']} at {place}") from None
    if [item.index for item in items] != list(range(count)):
        raise EmbedderMisbehaved(f"{len(items)} vectors for {count} texts, or wrong indices")
    if wrong := {len(item.embedding) for item in items} - {dimension}:
        raise EmbedderMisbehaved(f"vectors of {min(wrong)} dimensions, not {dimension}: {CHECK_DIMENSION}")
    rows = np.array([item.embedding for item in items])
    with np.errstate(all="ignore"):
        unit: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        lengths = np.linalg.norm(unit, axis=1)
    if not np.allclose(lengths, 1, atol=1e-3):  # NaN is close to nothing
        raise EmbedderMisbehaved("a vector without a direction: its length is zero or out of range")
    return unit
