"""Makes each stage of the loop visible: one log event, one metric and one span, all of the same name."""

from contextlib import nullcontext
from functools import cache
from time import perf_counter
from types import TracebackType

import structlog
from opentelemetry import trace
from prometheus_client import Histogram

STAGE_SECONDS = Histogram(
    "casebank_stage_seconds",
    "Time of one stage of the loop",
    ["stage"],
    buckets=(0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
)

log = structlog.get_logger("casebank")
_tracer = trace.get_tracer("casebank")


class stage:  # noqa: N801 - reads as a statement: with stage("embed")
    """Times what happens inside and reports it under the name, also when it fails; never what it was about."""

    __slots__ = ("_name", "_span", "_started")

    def __init__(self, name: str) -> None:
        """Prepares the report."""
        self._name = name

    def __enter__(self) -> None:
        """Starts the clock, and a span where somebody traces."""
        self._span = _tracer.start_as_current_span(self._name) if _traced() else nullcontext()
        self._span.__enter__()
        self._started = perf_counter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace_: TracebackType | None
    ) -> None:
        """Reports how long it took."""
        seconds = perf_counter() - self._started
        self._span.__exit__(kind, error, trace_)
        _seconds_of(self._name).observe(seconds)
        log.debug(self._name, ms=round(seconds * 1000, 3), **({"error": kind.__name__} if kind else {}))


@cache
def _seconds_of(name: str) -> Histogram:
    return STAGE_SECONDS.labels(name)


def _traced() -> bool:
    """Returns whether the process set up a tracer; without one, spans would cost time and go nowhere."""
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
