"""Common parts of clients of OpenAI-compatible servers: timeouts, retries, and a breaker for dead servers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import TypeVar

import openai
import stamina

from retrieval.errors import CasebankError
from retrieval.telemetry import Outage

Answer = TypeVar("Answer")

RETRYABLE = {408, 409, 429}
"""Statuses worth a retry besides 5xx: too slow, locked, too many requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Waits for a server, in seconds.

    Attributes:
        timeout_s: longest wait for one request.
        budget_s: longest time of one call, with its requests, retries and waits. Keep it below the patience of the
            callers: a cancelled call says nothing about the server, so the breaker does not count it.
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
    """Returns a client that never tries again by itself, for it would sleep as long as a server tells it to."""
    key = api_key.strip()  # a key read from a file often brings its line end
    if not key.isascii():
        raise ValueError("the API key has characters that an HTTP header cannot carry")
    # The client takes no empty key, and reads the environment's when it is given none.
    return openai.AsyncOpenAI(base_url=base_url, api_key=key or "none", timeout=patience.timeout_s, max_retries=0)


def is_retryable(status: int) -> bool:
    """Returns whether the same request may succeed a little later."""
    return status in RETRYABLE or status >= 500  # noqa: PLR2004 - 5xx


def backoff(error: Exception) -> bool | float:
    """Returns whether to try again, or the seconds until then if the server named a time."""
    if not isinstance(error, NoAnswer):
        return False
    return True if error.wait_s is None else error.wait_s


def retry_after_s(error: openai.APIStatusError) -> float | None:
    """Returns the seconds that the server asks to wait, or None if it does not say (or says it as a date)."""
    header = error.response.headers.get("retry-after", "")
    return float(header) if header.isdecimal() else None


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
