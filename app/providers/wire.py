"""Client of an OpenAI-compatible server, with timeouts, retries, and a breaker for dead servers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import ClassVar, TypeVar

import httpx
import stamina

from retrieval.errors import CasebankError
from retrieval.telemetry import Outage

Answer = TypeVar("Answer")

RETRYABLE = {408, 409, 429}
"""Statuses worth a retry besides 5xx: too slow, locked, too many requests."""
FAULTS = {400, 413, 422}
"""Statuses of a request that is too long, or has a part that the server does not take; another one may succeed."""
CHECK = {
    401: "check the API key",
    403: "check what the API key is allowed to do",
    404: "check the base URL and the model's name",
}
"""Advice by status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Waits for a server, in seconds.

    Attributes:
        timeout_s: longest wait for one request.
        budget_s: longest time of one call, with its requests, retries and waits. Keep it below the patience of the
            callers: a cancelled call is no sign of the server's state, so the breaker does not count it.
        attempts: number of requests of one call.
        wait_initial_s: wait before the second request; doubles each time, plus a jitter of up to the same length.
        wait_max_s: longest wait of our own choice; a server may ask for more, up to the budget.
        failures_to_open: calls in a row without an answer after which the server counts as dead.
        cooldown_s: time in which a dead server gets no request, until one call tries it again.
    """

    timeout_s: float = 2.0
    budget_s: float = 5.0
    attempts: int = 3
    wait_initial_s: float = 0.1
    wait_max_s: float = 1.0
    failures_to_open: int = 3
    cooldown_s: float = 15.0


class NoAnswer(Exception):
    """The server gave no answer, or asked for another try, after `wait_s` seconds if it named a time; a mix-in."""

    def __init__(self, message: str, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class Breaker:
    """Spares callers the wait for a dead server: `with breaker` refuses at once while the server counts as dead."""

    def __init__(self, patience: Patience, clock: Callable[[], float], refusal: type[CasebankError], what: str) -> None:
        self._patience = patience
        self._clock = clock
        self._refusal = refusal
        self._failures = 0
        self._open_until = float("-inf")
        self._outage = Outage(what)

    def __enter__(self) -> None:
        now = self._clock()
        if now < self._open_until:
            raise self._refusal("the server did not answer lately; not asked again yet")
        if self._failures >= self._patience.failures_to_open:
            self._open_until = now + self._patience.cooldown_s  # this caller alone tries it for the others

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is None:
            self._outage.is_over()
        elif isinstance(error, self._refusal):
            self._outage.goes_on(error)
        if isinstance(error, NoAnswer):
            self._failures += 1
            if self._failures >= self._patience.failures_to_open:
                self._open_until = self._clock() + self._patience.cooldown_s
        elif error is None or isinstance(error, CasebankError):  # a refusal shows life; a cancelled call does not
            self._failures, self._open_until = 0, float("-inf")


def backoff(error: Exception) -> bool | float:
    """Returns whether to try again, or the seconds until then if the server named a time."""
    if not isinstance(error, NoAnswer):
        return False
    return True if error.wait_s is None else error.wait_s


class Refused(Exception):
    """The server answered with a status that is no success."""

    def __init__(self, response: httpx.Response, body: bytes) -> None:
        super().__init__(response.status_code)
        self.status, self.body = response.status_code, body
        header = response.headers.get("retry-after", "")  # a date counts as no time
        self.wait_s = float(header) if header.isdecimal() else None


class Client:
    """A client of one model on a server with OpenAI's wire format; each kind of client has errors of its own.

    Attributes:
        what: kind of the model, for the log.
        refused: error of a request that the server does not take; another one may succeed.
        unavailable: error while the server answers no request.
        no_answer: the same, of a request that may be sent again; a ``NoAnswer``.
        misbehaved: error of an answer that is not of the agreed form.
        advice: remedies of refusals, by status.
    """

    what: ClassVar[str]
    refused: ClassVar[type[CasebankError]]
    unavailable: ClassVar[type[CasebankError]]
    no_answer: ClassVar[Callable[..., CasebankError]]
    misbehaved: ClassVar[type[CasebankError]]
    advice: ClassVar[Mapping[int, str]]

    def __init__(self, name: str, base_url: str, api_key: str, patience: Patience, clock: Callable[[], float]) -> None:
        """Prepares the client, without a request.

        Raises:
            ValueError: an HTTP header cannot carry the key, or the base URL is no address.
        """
        key = api_key.strip()  # a key read from a file often brings its line end
        if not key.isascii():
            raise ValueError("the API key has characters that an HTTP header cannot carry")
        headers, timeout_s = {"Authorization": f"Bearer {key or 'none'}"}, patience.timeout_s
        try:
            self._http = httpx.AsyncClient(base_url=base_url, headers=headers, timeout=timeout_s, follow_redirects=True)
        except httpx.InvalidURL as error:
            raise ValueError(f"the base URL of the embedder or the language model is no address: {error}") from None
        self._name, self._patience = name, patience
        self._breaker = Breaker(patience, clock, self.unavailable, self.what)

    async def aclose(self) -> None:
        """Closes the connections; the model cannot be asked afterwards."""
        await self._http.aclose()

    @asynccontextmanager
    async def _call(self, ends_at: float) -> AsyncIterator[None]:
        """Lets the block use the server until a time of the event loop; refuses at once while the server is dead."""
        with self._breaker:
            try:
                async with asyncio.timeout_at(ends_at):
                    yield
            except TimeoutError:
                raise self.no_answer(f"no answer from {self._name} in {self._patience.budget_s} s") from None

    async def _post(self, path: str, payload: Mapping[str, object], most_bytes: int) -> bytes:
        """Returns the body of the answer to one request.

        Errors are raised without their cause, which may quote the server, and the server the key or texts.

        Raises:
            Refused: the server refused the request.
            CasebankError: ``no_answer``, there was no whole answer in time; ``misbehaved``, it is too long.
        """
        body = bytearray()
        try:
            async with asyncio.timeout(self._patience.timeout_s):  # the HTTP client's own restarts with every byte
                async with self._http.stream("POST", path, json=payload) as response:
                    async for chunk in response.aiter_bytes():
                        body += chunk
                        if len(body) > most_bytes:
                            raise self.misbehaved(f"an answer of more than {most_bytes} bytes")
        except (TimeoutError, httpx.HTTPError) as error:
            raise self.no_answer(f"no answer from {self._name} ({type(error).__name__})") from None
        if not response.is_success:
            raise Refused(response, bytes(body))
        return bytes(body)

    def _error_of(self, refusal: Refused, ends_at: float) -> CasebankError:
        """Returns the error to raise for a refusal; one that asks to wait beyond the call's end is not retried."""
        status, wait_s = refusal.status, refusal.wait_s
        message = f"{self._name} answered HTTP {status}: {self.advice.get(status, 'see the log of its server')}"
        if status in FAULTS:
            return self.refused(message)
        if status not in RETRYABLE and status < 500:  # noqa: PLR2004 - 5xx
            return self.unavailable(message)
        if wait_s is not None and wait_s >= ends_at - asyncio.get_running_loop().time():
            return self.unavailable(f"{message}; it asks to wait {wait_s:.0f} s")
        return self.no_answer(message, wait_s)

    async def _retried(self, request: Callable[[], Awaitable[Answer]]) -> Answer:
        """Returns the request's answer, after up to ``attempts`` tries.

        Raises:
            Exception: the last try's error, or the first that another try cannot correct.
        """
        # Not stamina's decorator or caller: those may log the arguments, which are a user's texts.
        async for attempt in stamina.retry_context(
            on=backoff,
            attempts=self._patience.attempts,
            timeout=self._patience.budget_s,
            wait_initial=self._patience.wait_initial_s,
            wait_jitter=self._patience.wait_initial_s,
            wait_max=self._patience.wait_max_s,
        ):
            with attempt:
                return await request()
        raise AssertionError("unreachable: the last attempt returns or raises")
