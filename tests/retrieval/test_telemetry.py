"""A stage is reported under its name, also when it fails."""

import pytest
from prometheus_client import REGISTRY
from structlog.contextvars import bound_contextvars, merge_contextvars
from structlog.testing import capture_logs

from retrieval.telemetry import Outage, caused_by, links, log, origin, stage


def count(name: str) -> float:
    return REGISTRY.get_sample_value("casebank_stage_seconds_count", {"stage": name}) or 0.0


def test_a_stage_is_timed_and_logged_under_its_name():
    with capture_logs() as logs, stage("test.fine"):
        pass
    assert count("test.fine") == 1
    assert [(entry["event"], "error" in entry) for entry in logs] == [("test.fine", False)]


def test_a_stage_that_fails_is_reported_by_the_kind_of_error_alone():
    with capture_logs() as logs, pytest.raises(ValueError, match="secret"), stage("test.broken"):
        raise ValueError("secret")
    assert count("test.broken") == 1
    assert logs[0]["error"] == "ValueError"
    assert "secret" not in str(logs)


def test_an_outage_is_told_when_it_begins_and_when_it_ends_and_not_in_between():
    outage = Outage("database")
    with capture_logs() as logs:
        outage.is_over()
        for _ in range(3):
            outage.goes_on(ValueError("secret"))
        outage.is_over()
        outage.is_over()
        outage.goes_on(ValueError("secret"))
    assert [(entry["event"], entry["of"]) for entry in logs] == [
        ("outage.began", "database"),
        ("outage.ended", "database"),
        ("outage.began", "database"),
    ]
    assert logs[0]["error"] == "ValueError"
    assert "secret" not in str(logs)


def test_what_a_request_left_behind_is_done_under_its_id_and_linked_to_its_span():
    with bound_contextvars(request_id="one"):
        named = origin()
    assert named == {"request_id": "one"}
    trace_id, span_id = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    (link,) = links({**named, "traceparent": f"00-{trace_id}-{span_id}-01"})
    assert (link.context.trace_id, link.context.span_id) == (int(trace_id, 16), int(span_id, 16))
    with capture_logs(processors=[merge_contextvars]) as logs:
        with caused_by(named, "work.case"):
            log.info("inside")
        log.info("outside")
    assert [entry.get("request_id") for entry in logs] == ["one", None]


def test_outside_of_a_request_nothing_is_named_and_nothing_linked():
    assert (origin(), links({}), links({"traceparent": "rubbish"})) == ({}, [], [])
