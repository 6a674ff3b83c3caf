"""The fate of everything acknowledged, read from the database as its owner."""

import asyncio
import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import asyncpg

from bench.faults.ledger import Ledger
from policy.examples import LEAST_AGREED

STUCK_S = 60.0
"""Seconds within which some case must leave a queue that is not empty."""
_POLL_S = 0.2
_NEAR = 1e-3

_CASES = (
    "SELECT user_sub, id::text, idempotency_key, status, retrieval_id::text, merged_into::text, occurrences FROM cases"
)
_PENDING = (
    "SELECT (SELECT count(*) FROM cases WHERE status = 'pending')"
    " + (SELECT count(*) FROM reflections WHERE status = 'pending')"
)
_NOT_LEARNED = "SELECT id::text FROM reflections WHERE status <> 'ready'"
_INSERTED = "SELECT subject_id::text FROM audit WHERE action = 'insert_case'"
_DECISIONS = "SELECT id::text, reward FROM decisions"
_REWARDS = """SELECT decision_id::text, reward, source, actor FROM rewards WHERE decision_id IS NOT NULL
              ORDER BY created_at, id"""
_SLOTS = "SELECT decision_id::text, case_id::text, used, agreed FROM decision_slots"
_RECORDS = "SELECT id::text, reuse_count, reuse_reward FROM cases"


Decisions = dict[str, float | None]
"""The rewards of all retrievals, by id."""

History = dict[str, list[asyncpg.Record]]
"""Rewards by retrieval, the oldest first."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of fault, and its cases."""

    name: str
    cases: list[str]


async def drained(bank: asyncpg.Connection) -> bool:
    """Waits until the worker has neither cases nor lessons to do; returns False if their number stops falling."""
    fewest, since = math.inf, time.monotonic()
    while pending := await bank.fetchval(_PENDING):
        if pending < fewest:
            fewest, since = pending, time.monotonic()
        if time.monotonic() - since > STUCK_S:
            return False
        await asyncio.sleep(_POLL_S)
    return True


async def reckon(bank: asyncpg.Connection, ledger: Ledger) -> list[Fault]:
    """Compares the bank with the acknowledgements, and returns every kind of fault with its cases, if any.

    Args:
        bank: connection that sees the rows of all users.
        ledger: acknowledgements to the clients, which repeat each retain until it is acknowledged.
    """
    rows = await bank.fetch(_CASES)
    inserted = Counter(row[0] for row in await bank.fetch(_INSERTED))
    decisions = {row["id"]: row["reward"] for row in await bank.fetch(_DECISIONS)}
    history: dict[str, list[asyncpg.Record]] = defaultdict(list)
    for row in await bank.fetch(_REWARDS):
        history[row["decision_id"]].append(row)
    return [
        Fault("acknowledged retains lost", list(_lost(rows, ledger))),
        Fault("cases without an acknowledgement, or two for one retain", list(_doubled(rows, inserted, ledger))),
        Fault("cases stuck or dead", [row["id"] for row in rows if row["status"] not in {"ready", "merged"}]),
        Fault("lessons stuck or dead", [row["id"] for row in await bank.fetch(_NOT_LEARNED)]),
        Fault("repeats counted wrongly", list(_miscounted(rows))),
        Fault("links to a retrieval lost", list(_unlinked(rows, decisions, ledger))),
        Fault("acknowledged rewards lost", list(_rewards_lost(history, ledger))),
        Fault("rewards of runs counted other than once", list(_not_once(rows, history))),
        Fault("retrievals with another reward than the one that counts", list(_unsettled(decisions, history))),
        Fault("reuse records that the log does not bear out", await _wrong_credit(bank, decisions)),
    ]


def _lost(rows: Iterable[asyncpg.Record], ledger: Ledger) -> Iterator[str]:
    kept = {row["idempotency_key"]: row["id"] for row in rows}
    return (key for key, acknowledged in ledger.retains.items() if kept.get(key) != acknowledged.case_id)


def _doubled(rows: Iterable[asyncpg.Record], inserted: Counter[str], ledger: Ledger) -> Iterator[str]:
    for row in rows:
        if row["idempotency_key"] not in ledger.retains or inserted[row["id"]] != 1:
            yield row["id"]


def _miscounted(rows: Iterable[asyncpg.Record]) -> Iterator[str]:
    merged = Counter(row["merged_into"] for row in rows if row["merged_into"] is not None)
    return (row["id"] for row in rows if row["status"] == "ready" and row["occurrences"] != 1 + merged[row["id"]])


def _unlinked(rows: Iterable[asyncpg.Record], decisions: Decisions, ledger: Ledger) -> Iterator[str]:
    # a retrieval that the answer to a retain named is on its case; one that was called unknown is gone
    linked = {row["idempotency_key"]: row["retrieval_id"] for row in rows}
    for key, acknowledged in ledger.retains.items():
        if acknowledged.retrieval_id != linked.get(key) or (
            acknowledged.retrieval_id and acknowledged.retrieval_id not in decisions
        ):
            yield key
    yield from ledger.missing & decisions.keys()


def _rewards_lost(history: History, ledger: Ledger) -> Iterator[str]:
    # each was kept at most once per request, beside the reward that the worker passed on from its run
    for retrieval_id, reward in ledger.rewards.items():
        rows = [row for row in history[retrieval_id] if row["source"] == "user" and row["actor"] != "worker"]
        kept = [row["reward"] for row in rows]
        same = [value for value in kept if math.isclose(value, reward.value, abs_tol=_NEAR)]
        if not 1 <= len(same) <= reward.sent or len(same) != len(kept):
            yield retrieval_id


def _not_once(rows: Iterable[asyncpg.Record], history: History) -> Iterator[str]:
    # each run that began with a retrieval passed its reward on to it, once
    runs = Counter(row["retrieval_id"] for row in rows if row["retrieval_id"] is not None)
    for retrieval_id in runs.keys() | history.keys():
        if runs[retrieval_id] != sum(row["actor"] == "worker" for row in history.get(retrieval_id, [])):
            yield retrieval_id


def _unsettled(decisions: Decisions, history: History) -> Iterator[str]:
    # the newest reward of a trusted source counts, or else the newest of all
    for retrieval_id, rows in history.items():
        trusted = [row["reward"] for row in rows if row["source"] != "heuristic"]
        if decisions.get(retrieval_id) != (trusted or [row["reward"] for row in rows])[-1]:
            yield retrieval_id


async def _wrong_credit(bank: asyncpg.Connection, decisions: Decisions) -> list[str]:
    """Recomputes every reuse record: the used cases share an outcome, or all cases where no use was reported.

    Their shares grow with the agreement of the run's plan with each of them.
    """
    slates: dict[str, list[asyncpg.Record]] = defaultdict(list)
    for slot in await bank.fetch(_SLOTS):
        slates[slot["decision_id"]].append(slot)
    counts: dict[str, float] = defaultdict(float)
    sums: dict[str, float] = defaultdict(float)
    for retrieval_id, slots in slates.items():
        reward = decisions.get(retrieval_id)
        if reward is None:
            continue
        used = slots if all(slot["used"] is None for slot in slots) else [slot for slot in slots if slot["used"]]
        weights = [LEAST_AGREED + (slot["agreed"] or 0.0) ** 2 for slot in used]
        for slot, weight in zip(used, weights, strict=True):
            counts[slot["case_id"]] += weight / sum(weights)
            sums[slot["case_id"]] += reward * weight / sum(weights)
    return [
        row["id"]
        for row in await bank.fetch(_RECORDS)
        if not math.isclose(row["reuse_count"], counts[row["id"]], rel_tol=_NEAR, abs_tol=_NEAR)
        or not math.isclose(row["reuse_reward"], sums[row["id"]], rel_tol=_NEAR, abs_tol=_NEAR)
    ]
