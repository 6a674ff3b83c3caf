"""Makes each stage of the loop visible: one log event, one metric and one span, all of the same name."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

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


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Times what happens inside and reports it under the name, also when it fails; never what it was about."""
    started = perf_counter()
    error = ""
    with _tracer.start_as_current_span(name):
        try:
            yield
        except Exception as failure:
            error = type(failure).__name__
            raise
        finally:
            seconds = perf_counter() - started
            STAGE_SECONDS.labels(name).observe(seconds)
            log.debug(name, ms=round(seconds * 1000, 3), **({"error": error} if error else {}))
