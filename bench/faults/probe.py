"""When it is back: it serves, goes on serving, and the worker works off the queue again."""

import asyncio
import time
from dataclasses import dataclass

import httpx

from bench.faults.ledger import Acknowledged
from bench.faults.load import Backend
from bench.fill import AGENT

STEADY_S = 1.0
"""How long no probe may fail before the first of them counts: just after a kill one may yet slip through."""
LONGEST_S = 300.0
_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True)
class Back:
    """How many seconds it took.

    Attributes:
        serving: until a retain and a retrieve were answered, and all that followed.
        working: until that retained run was ready.
    """

    serving: float
    working: float


async def back(probe: Backend, since: float) -> Back | None:
    """Returns how long it took from then, by the performance counter, until all worked again; None: it does not."""
    try:
        async with asyncio.timeout(LONGEST_S):
            serving, first = await _serving(probe, since)
            await _worked(probe, first.case_id)
    except TimeoutError:
        return None
    return Back(serving, time.perf_counter() - since)


async def _serving(probe: Backend, since: float) -> tuple[float, Acknowledged]:
    found: tuple[float, Acknowledged] | None = None
    while found is None or time.perf_counter() - since < found[0] + STEADY_S:
        kept = await _served(probe)
        if kept is None:
            found = None
        elif found is None:
            found = time.perf_counter() - since, kept
        await asyncio.sleep(_PAUSE_S)
    return found


async def _served(probe: Backend) -> Acknowledged | None:
    """Retains a run and retrieves by words and vectors, and returns what was retained; None where one failed."""
    task = f"{probe.texts[probe.number % len(probe.texts)]}, number {probe.number}"
    kept = await probe.retain_once({"agent": AGENT, "task": task, "outcome": "success"})
    if kept is None:
        return None
    found = await probe.ask("/v1/retrieve", {"agent": AGENT, "query": task})
    whole = found is not None and found["mode"] in {"hybrid", "empty"} and not found["degraded"]
    return kept if whole else None


async def _worked(probe: Backend, case_id: str) -> None:
    """Waits until the case is no longer pending."""
    while True:
        try:
            answer = await probe.http.get(f"/v1/cases/{case_id}")
        except httpx.TransportError:
            continue
        if answer.is_success and answer.json()["status"] != "pending":
            return
        await asyncio.sleep(_PAUSE_S)
