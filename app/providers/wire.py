"""Common parts of clients of OpenAI-compatible servers: timeouts, retries, and a breaker for dead servers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import TypeVar

import httpx
import openai
import stamina

from retrieval.errors import CasebankError
from retrieval.telemetry import Outage

Answer = TypeVar("Answer")
_Kind = Callable[[str], CasebankError]

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


def client(base_url: str, api_key: str, patience: Patience) -> openai.AsyncOpenAI:
    """Returns a client that never tries again by itself, for it would sleep as long as a server tells it to.

    Raises:
        ValueError: an HTTP header cannot carry the key, or the base URL is no address.
    """
    key = api_key.strip()  # a key read from a file often brings its line end
    if not key.isascii():
        raise ValueError("the API key has characters that an HTTP header cannot carry")
    try:
        httpx.URL(base_url)
    except httpx.InvalidURL as error:
        raise ValueError(f"the base URL of the embedder or the language model is no address: {error}") from None
    # The client takes no empty key, and reads the environment's when it is given none.
    return openai.AsyncOpenAI(base_url=base_url, api_key=key or "none", timeout=patience.timeout_s, max_retries=0)


def refusal(
    error: openai.APIStatusError,
    message: str,
    left_s: float,
    kinds: tuple[_Kind, _Kind, Callable[[str, float | None], CasebankError]],
) -> CasebankError:
    """Returns the error to raise for an HTTP status, of the kinds refused, unavailable, and worth another attempt.

    ``left_s`` are the seconds that the call still has; an answer that asks to wait longer is worth no attempt.
    """
    refused, unavailable, worth_another = kinds
    if error.status_code in FAULTS:
        return refused(message)
    if error.status_code not in RETRYABLE and error.status_code < 500:  # noqa: PLR2004 - 5xx
        return unavailable(message)
    header = error.response.headers.get("retry-after", "")  # a date counts as no time
    wait_s = float(header) if header.isdecimal() else None
    if wait_s is not None and wait_s >= left_s:
        return unavailable(f"{message}; it asks to wait {wait_s:.0f} s")
    return worth_another(message, wait_s)


def backoff(error: Exception) -> bool | float:
    """Returns whether to try again, or the seconds until then if the server named a time."""
    if not isinstance(error, NoAnswer):
        return False
    return True if error.wait_s is None else error.wait_s


async def with_retries(request: Callable[[], Awaitable[Answer]], patience: Patience) -> Answer:
    """Returns the request's answer, after up to ``attempts`` tries.

    Raises:
        Exception: the last try's error, or the first that another try cannot correct.
    """
    # Not stamina's decorator or caller: those may log the arguments, which are a user's texts.
    async for attempt in stamina.retry_context(
        on=backoff,
        attempts=patience.attempts,
        timeout=patience.budget_s,
        wait_initial=patience.wait_initial_s,
        wait_jitter=patience.wait_initial_s,
        wait_max=patience.wait_max_s,
    ):
        with attempt:
            return await request()
    raise AssertionError("unreachable: the last attempt returns or raises")
