"""Makes each stage of the loop visible: one log event, one metric and one span, all of the same name."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from time import monotonic, perf_counter
from types import TracebackType

import structlog
from opentelemetry import trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from prometheus_client import Counter, Histogram

STAGE_SECONDS = Histogram(
    "casebank_stage_seconds",
    "Time of one stage of the loop",
    ["stage"],
    buckets=(0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
)

REWARDS = Counter(
    "casebank_rewards_total", "Rewards that came with a retain or as feedback, by who gave them", ["source"]
)

log = structlog.get_logger("casebank")
_tracer = trace.get_tracer("casebank")
_propagator = TraceContextTextMapPropagator()


class Outage:
    """State of a part that the process depends on; the log has the begin and the end of an outage, once each."""

    __slots__ = ("_since", "_what")

    def __init__(self, what: str) -> None:
        """Assumes that it answers."""
        self._what = what
        self._since: float | None = None

    def goes_on(self, error: BaseException) -> None:
        """Notes that it does not answer; the log has the error's type alone, for the message may quote a user."""
        if self._since is None:
            self._since = monotonic()
            log.warning("outage.began", of=self._what, error=type(error).__name__)

    def is_over(self) -> None:
        """Notes that it answers."""
        if self._since is not None:
            log.info("outage.ended", of=self._what, seconds=round(monotonic() - self._since, 3))
            self._since = None


_handed_on: ContextVar[Mapping[str, str] | None] = ContextVar("handed_on", default=None)


@contextmanager
def on_behalf_of(named: Mapping[str, str]) -> Iterator[None]:
    """Makes this the origin of the work in the block, in a process that no request reaches."""
    token = _handed_on.set(named)
    try:
        yield
    finally:
        _handed_on.reset(token)


def origin() -> dict[str, str]:
    """Returns the id of the request under way, and its span if traced, for the process that finishes its work."""
    if (handed_on := _handed_on.get()) is not None:
        return dict(handed_on)
    named: dict[str, str] = {}
    if (request_id := structlog.contextvars.get_contextvars().get("request_id")) is not None:
        named["request_id"] = str(request_id)
    if _traced():
        _propagator.inject(named)
    return named


@contextmanager
def caused_by(named: Mapping[str, str], name: str) -> Iterator[None]:
    """Runs work that a request left behind: under its id in the log, and in a span that is linked to the request's."""
    kept = {key: named[key] for key in ("request_id",) if key in named}
    span = _tracer.start_as_current_span(name, links=links(named)) if _traced() else nullcontext()
    with structlog.contextvars.bound_contextvars(**kept), span:
        yield


def links(named: Mapping[str, str]) -> list[trace.Link]:
    """Returns the link to the span of the request; empty if it was not traced."""
    span = trace.get_current_span(_propagator.extract(named)).get_span_context()
    return [trace.Link(span)] if span.is_valid else []


class stage:  # noqa: N801 - reads as a statement: with stage("embed")
    """Times the block and reports it under the name, also when it fails; never its contents."""

    __slots__ = ("_name", "_span", "_started")

    def __init__(self, name: str) -> None:
        """Prepares the report."""
        self._name = name

    def __enter__(self) -> None:
        """Starts the clock, and a span where somebody traces."""
        self._span = _tracer.start_as_current_span(self._name) if _traced() else None
        if self._span is not None:
            self._span.__enter__()
        self._started = perf_counter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace_: TracebackType | None
    ) -> None:
        """Reports how long it took."""
        seconds = perf_counter() - self._started
        if self._span is not None:
            self._span.__exit__(kind, error, trace_)
        _seconds_of(self._name).observe(seconds)
        log.debug(self._name, ms=round(seconds * 1000, 3), **({"error": kind.__name__} if kind else {}))


@cache
def _seconds_of(name: str) -> Histogram:
    return STAGE_SECONDS.labels(name)


@cache
def _traced() -> bool:
    """Returns whether the process set up a tracer before its first stage; without one, spans would go nowhere.

    It is asked once: OpenTelemetry looks into the process's environment each time.
    """
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
