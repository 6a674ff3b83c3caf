"""Embeddings from any server that speaks OpenAI's wire format: OpenAI, vLLM, Ollama, TEI, llama.cpp."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np
import openai
from pydantic import BaseModel, ConfigDict, ValidationError

from app.providers import wire
from app.providers.wire import Breaker, NoAnswer, Patience, client, with_retries
from retrieval.errors import EmbedderMisbehaved, EmbedderRefused, EmbedderUnavailable
from retrieval.ports import Vectors, embedder_inputs

CHECK = wire.CHECK | {
    400: "check the model's limit on text length (CASEBANK_OPENAI_MAX_CHARS), and whether it can shorten vectors"
    " (CASEBANK_OPENAI_ASK_DIMENSION)"
}
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


class OpenAIEmbedder:
    """Makes vectors of texts over HTTP, and checks every part of the server's answer."""

    def __init__(
        self, endpoint: Endpoint, patience: Patience | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._endpoint = endpoint
        self._patience = patience or Patience()
        self._breaker = Breaker(self._patience, clock, EmbedderUnavailable, "embedder")
        self._client = client(endpoint.base_url, endpoint.api_key, self._patience)
        self._ask_dimension = bool(endpoint.ask_dimension)

    @property
    def model(self) -> str:
        """Name of the vector space: model and dimension, for vectors of two lengths cannot be compared."""
        return f"{self._endpoint.model}@{self._endpoint.dimension}"

    @property
    def dimension(self) -> int:
        """Length of each vector."""
        return self._endpoint.dimension

    async def aclose(self) -> None:
        """Closes the connections; the embedder cannot be used afterwards."""
        await self._client.close()

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
        with self._breaker:
            try:
                async with asyncio.timeout(self._patience.budget_s):
                    rows += [await self._embed_batch(batch) for batch in batches]
            except TimeoutError:
                raise _NoAnswer(f"no vectors from {self.model} in {self._patience.budget_s} s") from None
        return np.concatenate(rows)

    async def _embed_batch(self, inputs: list[str]) -> Vectors:
        """Returns the vectors of one request; with `ask_dimension="try"` a refused one goes without the dimension."""
        asks = self._ask_dimension  # for this request alone: others go on beside it
        try:
            return await with_retries(partial(self._request, inputs, asks=asks), self._patience)
        except EmbedderRefused:
            if not asks or self._endpoint.ask_dimension != "try":
                raise
        vectors = await with_retries(partial(self._request, inputs, asks=False), self._patience)
        self._ask_dimension = False  # the dimension was the cause of the refusal
        return vectors

    async def _request(self, inputs: list[str], *, asks: bool) -> Vectors:
        """Sends one request for the vectors of the texts, which names the dimension if ``asks``, and returns them.

        Errors are raised without their cause: the client's errors quote the server, which may quote key or texts.
        """
        try:
            async with asyncio.timeout(self._patience.timeout_s):  # the client's own restarts with every byte
                response = await self._client.embeddings.with_raw_response.create(
                    model=self._endpoint.model,
                    input=inputs,
                    encoding_format="float",
                    dimensions=self.dimension if asks else openai.omit,
                )
        except openai.APIStatusError as error:
            advice = CHECK.get(error.status_code, "see the log of the embedding server")
            message = f"{self.model} answered HTTP {error.status_code}: {advice}"
            kinds = EmbedderRefused, EmbedderUnavailable, _NoAnswer
            raise wire.refusal(error, message, self._patience.budget_s, kinds) from None
        except (TimeoutError, openai.OpenAIError) as error:
            raise _NoAnswer(f"no answer from {self.model} ({type(error).__name__})") from None
        return _vectors(response.content, len(inputs), self.dimension)


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
