"""The measurements of a benchmark: a number, its aim, and its details."""

import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial


@dataclass(frozen=True, slots=True)
class Measurement:
    """One number; ``aim`` is the largest good value, or with ``at_least`` the smallest.

    Attributes:
        interval: 95 % interval, low and high, or None.
        proven: the interval's end on the worse side must reach the aim, not only the number itself.
    """

    name: str
    value: float
    unit: str
    detail: str
    aim: float | None = None
    at_least: bool = False
    interval: tuple[float, float] | None = None
    proven: bool = False

    @property
    def reached(self) -> bool | None:
        """Returns whether the aim is reached; None without an aim."""
        if self.aim is None:
            return None
        low, high = self.interval if self.proven and self.interval else (self.value, self.value)
        return low >= self.aim if self.at_least else high <= self.aim

    @property
    def aim_text(self) -> str:
        """Returns the aim for a table."""
        if self.aim is None:
            return ""
        return f"{'>=' if self.at_least else '<='} {self.aim:g}{', proven' if self.proven else ''}"


async def timed_ms(act: Callable[[], Awaitable[object]]) -> float:
    """Runs the act and returns its milliseconds."""
    started = time.perf_counter()
    await act()
    return (time.perf_counter() - started) * 1000


async def interleaved(rounds: int, *acts: Callable[[int], Awaitable[object]]) -> list[list[float]]:
    """Returns each act's times in milliseconds over the rounds, taken in turn so that noise affects all alike."""
    times: list[list[float]] = [[] for _ in acts]
    for number in range(rounds):
        for place, act in enumerate(acts):
            times[place].append(await timed_ms(partial(act, number)))
    return times


def p50(times: Sequence[float]) -> float:
    """Returns the median."""
    return statistics.median(times)


def p95(times: Sequence[float]) -> float:
    """Returns the 95th percentile."""
    return statistics.quantiles(times, n=20)[-1]
