"""Reports each stage of a request: with a log event, a metric and a span of the same name."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from time import monotonic, perf_counter

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
    """State of a service that the process needs, such as the database; logs when an outage begins and ends."""

    __slots__ = ("_since", "_what")

    def __init__(self, what: str) -> None:
        """Takes the name of the service, which is assumed to answer."""
        self._what = what
        self._since: float | None = None

    def goes_on(self, error: BaseException) -> None:
        """Notes that the service does not answer; logs only the error's type, because its message may quote a user."""
        if self._since is None:
            self._since = monotonic()
            log.warning("outage.began", of=self._what, error=type(error).__name__)

    def is_over(self) -> None:
        """Notes that the service answers."""
        if self._since is not None:
            log.info("outage.ended", of=self._what, seconds=round(monotonic() - self._since, 3))
            self._since = None


_handed_on: ContextVar[Mapping[str, str] | None] = ContextVar("handed_on", default=None)


@contextmanager
def on_behalf_of(named: Mapping[str, str]) -> Iterator[None]:
    """Sets what ``origin`` returns within the block, for a process that does the work of another one's request."""
    token = _handed_on.set(named)
    try:
        yield
    finally:
        _handed_on.reset(token)


def origin() -> dict[str, str]:
    """Returns the id of the current request, and its span if it is traced, for a process that continues its work."""
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
    """Runs the block as work that a request caused: with the request's id in the log, and a span linked to its span."""
    kept = {key: named[key] for key in ("request_id",) if key in named}
    span = _tracer.start_as_current_span(name, links=links(named)) if _traced() else nullcontext()
    with structlog.contextvars.bound_contextvars(**kept), span:
        yield


def links(named: Mapping[str, str]) -> list[trace.Link]:
    """Returns a link to a request's span, from its ``origin``; an empty list if the request was not traced."""
    span = trace.get_current_span(_propagator.extract(named)).get_span_context()
    return [trace.Link(span)] if span.is_valid else []


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Times the block and reports the time under the stage's name, even if the block fails; with a span if traced."""
    span = _tracer.start_as_current_span(name) if _traced() else nullcontext()
    failed: dict[str, str] = {}
    started = perf_counter()
    try:
        with span:
            yield
    except BaseException as error:
        failed = {"error": type(error).__name__}
        raise
    finally:
        seconds = perf_counter() - started
        STAGE_SECONDS.labels(name).observe(seconds)
        log.debug(name, ms=round(seconds * 1000, 3), **failed)


@cache
def _traced() -> bool:
    """Returns whether the process set up a tracer before its first stage; without one, spans would go nowhere.

    It is asked once: OpenTelemetry looks into the process's environment each time.
    """
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
