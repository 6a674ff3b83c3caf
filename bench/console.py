"""Time to paint and size of each console page, in a bank of 10,000 cases."""

import statistics
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit
from uuid import uuid4

import httpx

from app.console.page import COOKIE
from app.console.render import STATIC, static
from app.console.visits import Link, VisitSeal
from app.processes.own_service import OwnService, own_service
from bench.bank import filled
from bench.fill import AGENT, tasks
from bench.measure import Measurement, p50, timed_ms

CASES = 10_000
RUNS = 40
"""Runs retained over HTTP, whose payloads the pages can open."""
DECISIONS = 200
ROUNDS = 9
USER = "user-1"
CHROMIUM = Path("/usr/bin/chromium")
AIM_MS, AIM_KB = 200.0, 400.0

FIRST_PAINT = """() => new Promise(resolve => {
  const entry = () => performance.getEntriesByName('first-contentful-paint')[0];
  const look = () => entry() ? resolve(entry().startTime) : requestAnimationFrame(look);
  look();
})"""


@dataclass(frozen=True, slots=True)
class PageTimes:
    """Times and size of a page; ``painted_ms`` is None without a browser."""

    answered_ms: float
    painted_ms: float | None
    size: int


async def console(home: Path) -> list[Measurement]:
    """Measures every page, in Chromium if it is installed, and the bytes of all pages together."""
    async with filled(home, users=1, per_user=CASES) as bank, own_service(bank.settings) as service:
        pages = await _furnished(service)
        cookie = _cookie(service)
        async with _painter(service, cookie) as paint:
            times = {name: await _page_times(service, cookie, path, paint) for name, path in pages.items()}
    shared = sum(len(static(name)) for name in STATIC)
    measured = [_measurement(name, each) for name, each in times.items()]
    total = (sum(each.size for each in times.values()) + shared) / 1000
    detail = f"{len(times)} pages, and {shared:,} bytes of style and icon that all of them share"
    return [*measured, Measurement("console, all pages", total, "kB", detail, aim=AIM_KB)]


def _measurement(name: str, times: PageTimes) -> Measurement:
    painted = times.painted_ms
    how = (
        "answered; no browser here"
        if painted is None
        else f"first paint in Chromium; answered in {times.answered_ms:.0f} ms"
    )
    value = times.answered_ms if painted is None else painted
    return Measurement(f"console, {name}", value, "ms", f"{how}; {times.size:,} bytes", aim=AIM_MS)


async def _furnished(service: OwnService) -> Mapping[str, str]:
    """Fills the bank so that each page has content, and returns the pages' paths by name."""
    headers = service.headers(USER)
    async with httpx.AsyncClient(base_url=service.base_url, headers=headers, timeout=60) as http:
        retrievals = [
            await _post(http, "/v1/retrieve", {"agent": AGENT, "query": task}) for task in tasks(8, DECISIONS)
        ]
        ids = [retrieval["retrieval_id"] for retrieval in retrievals]
        cases = [await _retain(http, task, ids[number]) for number, task in enumerate(tasks(9, RUNS))]
        for retrieval_id in ids[RUNS:]:
            await _post(http, "/v1/feedback", {"retrieval_id": retrieval_id, "reward": 0.75, "source": "metric"})
        turns = [{"role": "user", "content": f"I live in street {number}"} for number in range(30)]
        await _post(http, "/v1/sessions/a chat/turns", {"agent": AGENT, "turns": turns})
        for number in range(30):
            await _post(http, "/v1/facts", {"agent": AGENT, "kind": "fact", "text": f"plays instrument {number}"})
            entry = {"agent": AGENT, "category": "music", "type": "term", "text": f"instrument {number} has strings"}
            await _post(http, "/v1/knowledge", entry)
        run_id = str(uuid4())
        steps = [_looked_up(number) for number in range(1, RUNS + 1)]
        await _post(http, f"/v1/runs/{run_id}/steps", {"agent": AGENT, "task": "look things up", "steps": steps})
        newest: dict[str, str | int] = {"status": "any", "limit": 100}
        while any(
            case["lessons"] == "pending" for case in (await http.get("/v1/cases", params=newest)).json()["cases"]
        ):
            pass
        procedures = (await http.get("/v1/procedures", params={"agent": AGENT})).json()["procedures"]
    here = urlencode({"agent": AGENT})
    return {
        "overview": f"/console?{here}",
        "decisions": f"/console/decisions?{here}",
        "a decision": f"/console/decisions/{ids[-1]}?{here}",
        "bank": f"/console/bank?{here}",
        "a search": f"/console/bank?{here}&q=rename+the+column",
        "a case": f"/console/cases/{cases[0]}?{here}",
        "procedures": f"/console/procedures?{here}",
        "a procedure": f"/console/procedures/{procedures[0]['id']}?{here}",
        "tools": f"/console/tools?{here}",
        "a tool": f"/console/tool?{here}&name=sql",
        "sessions": f"/console/sessions?{here}",
        "a session": f"/console/session?{here}&name=a+chat",
        "facts": f"/console/facts?{here}",
        "knowledge": f"/console/knowledge?{here}",
        "shared knowledge": f"/console/shared-knowledge?{here}",
        "runs": f"/console/runs?{here}",
        "a run": f"/console/runs/{run_id}?{here}",
        "policy": f"/console/policy?{here}",
        "known": f"/console/known?{here}",
        "user": f"/console/user?{here}",
        "installation": f"/console/installation?{here}",
    }


async def _retain(http: httpx.AsyncClient, task: str, retrieval_id: str) -> str:
    failed = {"tool": "sql", "input": {"statement": task}, "output": "syntax error", "status": "error"}
    worked = {"tool": "sql", "input": {"statement": f"{task} text"}, "output": "done", "status": "ok"}
    run = {"agent": AGENT, "task": task, "outcome": "success", "plan": ["look", "change"], "reward": 1}
    more = {"reward_source": "metric", "retrieval_id": retrieval_id, "tool_traces": [failed, worked]}
    return str((await _post(http, "/v1/retain", run | more))["case_id"])


def _looked_up(number: int) -> dict[str, object]:
    return {"number": number, "tool": "read_file", "input": {"path": f"notes/{number}.txt"}, "output": f"note {number}"}


async def _post(http: httpx.AsyncClient, path: str, body: Mapping[str, object]) -> dict[str, Any]:
    answer = await http.post(path, json=body)
    answer.raise_for_status()
    fields: dict[str, Any] = answer.json()
    return fields


def _cookie(service: OwnService) -> str:
    visit = Link(user_sub=USER, made_at=datetime.now(UTC), is_operator=True).visit()
    return VisitSeal(service.settings).seal(visit)


async def _page_times(service: OwnService, cookie: str, path: str, paint: Any) -> PageTimes:
    async with httpx.AsyncClient(base_url=service.base_url, cookies={COOKIE: cookie}, timeout=60) as http:
        page = await http.get(path)
        page.raise_for_status()
        times = [await timed_ms(lambda: http.get(path)) for _ in range(ROUNDS)]
    painted = None if paint is None else statistics.median([await paint(path) for _ in range(ROUNDS)])
    return PageTimes(p50(times), painted, len(page.content))


def has_browser() -> bool:
    """Returns whether Chromium and its driver are installed."""
    return CHROMIUM.exists() and find_spec("playwright") is not None


@asynccontextmanager
async def _painter(service: OwnService, cookie: str) -> AsyncIterator[Any]:
    """Yields a function that loads a page in a browser and returns the milliseconds to its first paint, or None."""
    if not has_browser():
        yield None
        return
    from playwright.async_api import async_playwright  # noqa: PLC0415 - a dependency of the tests, not of the service

    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        context = await browser.new_context()
        host = str(urlsplit(service.base_url).hostname)
        await context.add_cookies([{"name": COOKIE, "value": cookie, "domain": host, "path": "/console"}])
        page = await context.new_page()

        async def paint(path: str) -> float:
            await page.goto(service.base_url + path)
            return float(await page.evaluate(FIRST_PAINT))

        yield paint
        await browser.close()
