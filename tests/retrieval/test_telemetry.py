"""A stage is reported under its name, also when it fails."""

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from retrieval.telemetry import stage


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
