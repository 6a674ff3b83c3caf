"""Time to recover: until the service answers without a break and the worker empties the queue again."""

import asyncio
import time
from dataclasses import dataclass

import httpx

from bench.faults.ledger import Acknowledged
from bench.faults.load import Backend
from bench.fill import AGENT

STEADY_S = 1.0
"""Seconds without a failing probe before the first counts: just after a kill one probe may still succeed."""
LONGEST_S = 300.0
_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True)
class Back:
    """Seconds to recover.

    Attributes:
        serving: seconds until a retain and a retrieve succeeded, and all later ones.
        working: seconds until that retained run was ready.
    """

    serving: float
    working: float


async def back(probe: Backend, since: float) -> Back | None:
    """Returns the seconds from ``since``, by the performance counter, until all worked again; None: it never did."""
    try:
        async with asyncio.timeout(LONGEST_S):
            serving, first = await _serving(probe, since)
            await _worked(probe, first.case_id)
    except TimeoutError:
        return None
    return Back(serving, time.perf_counter() - since)


async def _serving(probe: Backend, since: float) -> tuple[float, Acknowledged]:
    first: tuple[float, Acknowledged] | None = None
    while first is None or time.perf_counter() - since < first[0] + STEADY_S:
        kept = await _served(probe)
        if kept is None:
            first = None
        elif first is None:
            first = time.perf_counter() - since, kept
        await asyncio.sleep(_PAUSE_S)
    return first


async def _served(probe: Backend) -> Acknowledged | None:
    """Retains a run and retrieves by words and vectors; returns the acknowledgement, or None if either failed."""
    task = f"{probe.texts[probe.number % len(probe.texts)]}, number {probe.number}"
    kept = await probe.retain_once({"agent": AGENT, "task": task, "outcome": "success"})
    if kept is None:
        return None
    answer = await probe.ask("/v1/retrieve", {"agent": AGENT, "query": task})
    whole = answer is not None and answer["mode"] in {"hybrid", "empty"} and not answer["degraded"]
    return kept if whole else None


async def _worked(probe: Backend, case_id: str) -> None:
    """Waits until the worker has made the case ready and learned from its run."""
    while True:
        try:
            answer = await probe.http.get(f"/v1/cases/{case_id}")
        except httpx.TransportError:
            continue
        if answer.is_success and answer.json()["lessons"] != "pending":
            return
        await asyncio.sleep(_PAUSE_S)
