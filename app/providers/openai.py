"""Embeddings from any server that speaks OpenAI's wire format: OpenAI, vLLM, Ollama, TEI, llama.cpp."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType

import numpy as np
import openai
import stamina
from pydantic import BaseModel, ConfigDict, ValidationError

from retrieval.errors import EmbedderError, EmbedderMisbehaved, EmbedderRefused, EmbedderUnavailable
from retrieval.ports import Vectors, embedder_inputs

RETRYABLE = {408, 409, 429}
"""Besides 5xx: too slow, locked, too many requests."""

THE_TEXTS_FAULT = {400, 413, 422}
"""Too long, too many, not valid: another request may well succeed."""

CHECK = {
    400: "check the model's limit on text length (max_chars) and whether it can shorten vectors (ask_dimension)",
    401: "check the API key",
    403: "check what the API key is allowed to do",
    404: "check the base URL and the model's name",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where the vectors come from.

    Attributes:
        base_url: up to and with the version, as in http://localhost:8000/v1.
        model: the name that the server knows.
        dimension: length of the vectors; any other length is an error.
        ask_dimension: whether to ask the server for vectors of that length; many models cannot shorten theirs.
        api_key: empty for a local server.
        batch_size: texts in one request.
        max_chars: what is sent of a text; longer ones are cut.
    """

    base_url: str
    model: str
    dimension: int
    ask_dimension: bool = False
    api_key: str = field(default="", repr=False)
    batch_size: int = 128
    max_chars: int = 8_192


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait for an embedder, all in seconds unless said otherwise.

    Attributes:
        timeout_s: one request.
        budget_s: one `embed`, with its batches, retries and waits. Keep it below the patience of the
            callers: a call that they cancel says nothing about the server, so the breaker does not count it.
        attempts: requests made for one batch.
        wait_initial_s: before the second request; doubles each time and is jittered by as much again.
        wait_max_s: the longest wait of our own choice; a server may ask for more, up to the budget.
        failures_to_open: calls in a row without an answer, after which the embedder counts as dead.
        cooldown_s: how long nobody waits for a dead embedder, until one call tries it again.
    """

    timeout_s: float = 2.0
    budget_s: float = 5.0
    attempts: int = 3
    wait_initial_s: float = 0.1
    wait_max_s: float = 1.0
    failures_to_open: int = 3
    cooldown_s: float = 15.0


class _NoAnswer(EmbedderUnavailable):
    """The server gave no answer, or asked to be asked again, after `wait_s` seconds if it said so."""

    def __init__(self, message: str, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class OpenAIEmbedder:
    """Embeds over HTTP, and trusts nothing that comes back."""

    def __init__(
        self, endpoint: Endpoint, patience: Patience | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        api_key = endpoint.api_key.strip()  # a key read from a file often brings its line end
        if not api_key.isascii():
            raise ValueError("the API key has characters that an HTTP header cannot carry")
        self._endpoint = endpoint
        self._patience = patience or Patience()
        self._breaker = _Breaker(self._patience.failures_to_open, self._patience.cooldown_s, clock)
        # The client takes no empty key, and reads the environment's when it is given none.
        self._client = openai.AsyncOpenAI(
            base_url=endpoint.base_url, api_key=api_key or "none", timeout=self._patience.timeout_s, max_retries=0
        )

    @property
    def model(self) -> str:
        """Name of the vector space."""
        return self._endpoint.model

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
        # Not stamina's decorator or caller: those may log the arguments, which are a user's texts.
        async for attempt in stamina.retry_context(
            on=_backoff,
            attempts=self._patience.attempts,
            timeout=self._patience.budget_s,
            wait_initial=self._patience.wait_initial_s,
            wait_jitter=self._patience.wait_initial_s,
            wait_max=self._patience.wait_max_s,
        ):
            with attempt:
                return _vectors(await self._request(inputs), len(inputs), self.dimension)
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _request(self, inputs: list[str]) -> bytes:
        """Returns the body of one answer.

        Errors are raised without their cause: the client's quote the server, which may quote the key or the texts.
        """
        try:
            async with asyncio.timeout(self._patience.timeout_s):  # the client's own restarts with every byte
                response = await self._client.embeddings.with_raw_response.create(
                    model=self.model,
                    input=inputs,
                    encoding_format="float",
                    dimensions=self.dimension if self._endpoint.ask_dimension else openai.omit,
                )
        except openai.APIStatusError as error:
            raise self._refusal(error) from None
        except (TimeoutError, openai.OpenAIError) as error:
            raise _NoAnswer(f"no answer from {self.model} ({type(error).__name__})") from None
        return response.content

    def _refusal(self, error: openai.APIStatusError) -> EmbedderError:
        """Returns the error to raise for an HTTP status; only a `_NoAnswer` is worth another attempt."""
        status = error.status_code
        message = f"{self.model} answered HTTP {status}: {CHECK.get(status, 'see the log of the embedding server')}"
        if status in THE_TEXTS_FAULT:
            return EmbedderRefused(message)
        wait_s = _retry_after_s(error)
        if status not in RETRYABLE and status < 500:  # noqa: PLR2004 - 5xx
            return EmbedderUnavailable(message)
        if wait_s is not None and wait_s >= self._patience.budget_s:
            return EmbedderUnavailable(f"{message}; it asks to wait {wait_s:.0f} s")
        return _NoAnswer(message, wait_s)


class _Breaker:
    """Spares callers the wait for a dead server: `with breaker` refuses at once while it is thought dead."""

    def __init__(self, failures_to_open: int, cooldown_s: float, clock: Callable[[], float]) -> None:
        self._failures_to_open = failures_to_open
        self._cooldown_s = cooldown_s
        self._clock = clock
        self._failures = 0
        self._open_until = float("-inf")

    def __enter__(self) -> None:
        now = self._clock()
        if now < self._open_until:
            raise EmbedderUnavailable("the embedder did not answer lately; not asked again yet")
        if self._failures >= self._failures_to_open:
            self._open_until = now + self._cooldown_s  # this caller alone finds out for the others

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if isinstance(error, _NoAnswer):
            self._failures += 1
            if self._failures >= self._failures_to_open:
                self._open_until = self._clock() + self._cooldown_s
        elif error is None or isinstance(error, EmbedderError):  # even a refusal shows life; a cancelled call, nothing
            self._failures, self._open_until = 0, float("-inf")


class _Item(BaseModel):
    model_config = ConfigDict(strict=True)
    index: int
    embedding: list[float]  # finite or not: see _unit


class _Answer(BaseModel):
    data: list[_Item]


def _vectors(body: bytes, count: int, dimension: int) -> Vectors:
    """Returns the answer's vectors in the order asked for, (count, dimension), at length 1.

    Raises:
        EmbedderMisbehaved: not the JSON that was agreed, or the wrong count, order, dimension or numbers.
    """
    try:
        items = sorted(_Answer.model_validate_json(body).data, key=lambda item: item.index)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "the body"
        raise EmbedderMisbehaved(f"not an embeddings answer: {first['type']} at {place}") from None
    if [item.index for item in items] != list(range(count)):
        raise EmbedderMisbehaved(f"{len(items)} vectors for {count} texts, or wrong indices")
    if wrong := {len(item.embedding) for item in items} - {dimension}:
        raise EmbedderMisbehaved(
            f"vectors of {min(wrong)} dimensions, not {dimension}; check the model and the setting"
        )
    return _unit(np.array([item.embedding for item in items]))


def _unit(rows: np.ndarray) -> Vectors:
    """Returns the rows at length 1; a row that cannot be scaled to it (zero, NaN, infinite, huge) is an error."""
    with np.errstate(all="ignore"):
        unit: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        lengths = np.linalg.norm(unit, axis=1)
    if not np.allclose(lengths, 1, atol=1e-3):  # NaN is close to nothing
        raise EmbedderMisbehaved("a vector without a direction: its length is zero or out of range")
    return unit


def _backoff(error: Exception) -> bool | float:
    """Returns whether to try again, or after how many seconds if the server said so."""
    if not isinstance(error, _NoAnswer):
        return False
    return True if error.wait_s is None else error.wait_s


def _retry_after_s(error: openai.APIStatusError) -> float | None:
    """Returns the seconds that the server asks to wait, or None if it does not say (or says it as a date)."""
    header = error.response.headers.get("retry-after", "")
    return float(header) if header.isdecimal() else None
