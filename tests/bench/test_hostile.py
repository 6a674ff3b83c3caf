"""Hostile bodies are what a request may have, or the benchmark measures how fast a body is refused for its size."""

from app.settings import Settings
from bench.hostile import BYTES, costly_runs

MOST_BYTES = Settings.model_fields["max_body_bytes"].default


def test_each_hostile_body_is_nearly_as_large_as_a_body_may_be():
    sizes = {name: len(body) for name, body in costly_runs().items()}
    assert max(sizes.values()) <= MOST_BYTES
    assert [name for name, size in sizes.items() if size <= 0.95 * BYTES] == ["invalid traces, as many as may be"]
