"""Hostile bodies are what a request may have, or the benchmark measures how fast a body is refused for its size."""

import pytest

from app.settings import Settings
from bench.hostile import BYTES, costly_runs

MOST_BYTES = Settings.model_fields["max_body_bytes"].default


@pytest.mark.parametrize(("name", "body"), costly_runs().items(), ids=costly_runs())
def test_a_hostile_body_is_nearly_as_large_as_a_body_may_be(name: str, body: bytes):
    assert len(body) <= MOST_BYTES
    assert len(body) > 0.95 * BYTES or "as many as may be" in name
