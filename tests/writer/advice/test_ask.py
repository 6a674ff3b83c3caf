"""How long an agent's threshold of confidence is kept, and what computing it holds."""

from collections.abc import Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from app.postgres.pools import service_database
from policy.advice import RIGHT, Failures
from retrieval.advice.failures import FailureRow
from tests.service import AGENT, User
from writer.advice.answer import FailedCall
from writer.advice.ask import Adviser, Thresholds
from writer.advice.fixes import failures_in
from writer.analysis.calls import Call
from writer.author import Author


def row(fix: list[int]) -> Any:
    terms = {"tool": 5, "error": [1, 2], "call": [3], "terms": [4], "fix": fix}
    return SimpleNamespace(case_id=uuid4(), place=1, **terms, told=0, helped=0, proven=False)


async def test_a_threshold_is_kept_while_fixes_are_told_and_computed_again_for_a_new_failure():
    thresholds, rows = Thresholds(), [row([place]) for place in range(30)]
    unsteady, steady = failures_in(rows), failures_in([row([7]) for _ in range(30)])
    first = await thresholds.of("alice", rows, unsteady, RIGHT)
    told: list[Any] = [SimpleNamespace(**{**vars(each), "told": 3, "helped": 1}) for each in rows]
    assert await thresholds.of("alice", told, steady, RIGHT) == first
    assert await thresholds.of("alice", [*rows, row([7])], steady, RIGHT) < first


async def test_other_failures_have_a_threshold_of_their_own_even_if_the_last_one_is_the_same():
    thresholds, last = Thresholds(), row([7])
    unsteady, steady = ([*(row([fix]) for fix in fixes), last] for fixes in (range(29), [7] * 29))
    first = await thresholds.of("alice", unsteady, failures_in(unsteady), RIGHT)
    assert await thresholds.of("alice", steady, failures_in(steady), RIGHT) < first


async def test_no_connection_is_held_while_a_threshold_is_computed(alice: User, database_url: str):
    taken: list[int] = []

    class Watching(Thresholds):
        async def of(self, user_sub: str, rows: Sequence[FailureRow], past: Failures, precision: float) -> float:
            taken.append(database.pool.get_size() - database.pool.get_idle_size())
            return await super().of(user_sub, rows, past, precision)

    calls = [
        {"tool": "sql", "input": {"query": "DROP x"}, "output": "ERROR: no such table x", "status": "error"},
        {"tool": "sql", "input": {"query": "DROP TABLE x"}, "output": "DROP TABLE", "status": "ok"},
    ]
    await alice.retain("drop the table x", tool_traces=calls)
    await alice.settle()
    failed = Call(0, "sql", {"query": "DROP y"}, "ERROR: no such table y", failure="no such table y")
    author = Author(alice.name, alice.name, datetime.now(UTC))
    async with service_database(database_url) as database:
        adviser = Adviser(database, alice.service.runtime.keyring, Watching())
        await adviser.advise(author, FailedCall(AGENT, failed, "drop the table y"))
    assert taken == [0]
