"""The first of a run's calls that failed like the one that asks for advice."""

import time

from writer.advice.answer import first_like
from writer.analysis.calls import calls_in


def test_the_first_like_failure_of_a_long_session_is_found_at_once():
    queries = [f"SELECT a, b, c FROM t{place} WHERE x = {place} AND y IN ('a', 'b')" for place in range(10_000)]  # noqa: S608
    error = "ERROR: column q9 does not exist"
    calls = calls_in({"tool": "sql", "input": {"query": query}, "output": error} for query in queries)
    began = time.process_time()
    first, tried = first_like(calls[-1], calls)
    assert time.process_time() - began < 0.7
    assert (first, tried) == (calls[0], calls[1:])
