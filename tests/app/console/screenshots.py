"""Takes the pictures of docs/console: ``python -m tests.app.console.screenshots docs/console``.

With ``whole`` behind it each picture goes down to the foot of its page, to look at.

They show the bank of a demo whose runs were spread over ten weeks, so that there is a curve to see; what memory added,
and the verdict on the policy page, are of made-up worlds.
"""

import asyncio
import sys
import tempfile
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import asyncpg
import httpx
from PIL import Image
from playwright.async_api import Page, async_playwright

from app.commands.console import link
from app.console.page import COOKIE, ROOT, SIGN_IN
from app.console.visits import Link, VisitSeal
from app.demo.operator.house import House
from app.demo.run import AGENT, run_with_memory
from app.postgres.pools import dsn
from app.processes.own_service import OwnService, own_service
from app.runtime import owner_url, running
from app.settings import Settings
from bench.console import CHROMIUM
from policy.gate import GateSettings, judge
from tests.app.console.weeks import add_weeks
from tests.policies import stored
from tests.policy.worlds import two_arms
from writer.author import Author
from writer.knowledge.entry import KnowledgeWritten
from writer.knowledge.shared import write_shared
from writer.training import lifecycle

USER, TASKS, WEEKS = "alice", 80, 10
RUN = uuid4()
SIZE: Any = {"width": 1180, "height": 820}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
COLOURS = 96
SAID = ["I want to save 500 EUR a month.", "I live in Lisbon.", "My daughter's name is Ada.", "I prefer short answers."]
KNOWN = [
    {
        "category": "billing",
        "type": "rule",
        "title": "Invoices",
        "text": "An invoice is never deleted: it is cancelled.",
    },
    {"category": "billing", "type": "term", "title": "Dunning", "text": "Reminding of an invoice that is due."},
]

SHARED = [
    {
        "category": "migrations",
        "type": "rule",
        "title": "Columns",
        "text": "A column is dropped two releases after its last use.",
    },
    {"category": "migrations", "type": "term", "title": "Backfill", "text": "Filling a new column for old rows."},
]
FILE = {"path": "billing/invoices.py"}
STEPS: list[dict[str, Any]] = [
    {"tool": "read_file", "input": FILE, "output": "RETRIES = 3\n\nclass Invoices:\n    ...\n"},
    {
        "tool": "grep",
        "input": {"pattern": "RETRIES", "path": "billing"},
        "output": "billing/invoices.py:1:RETRIES = 3\n",
    },
    {
        "tool": "read_file",
        "input": {"path": "docs/dunning.md"},
        "output": "# Dunning\n\nThree letters, a week apart.\n",
    },
    {"tool": "write_file", "input": FILE | {"content": "RETRIES = 5\n"}, "output": "written"},
    {"tool": "grep", "input": {"pattern": "dunning", "path": "docs"}, "output": "docs/dunning.md:1:# Dunning\n"},
]

_SPREAD = f"""
WITH spread AS (
    SELECT id, row_number() OVER (ORDER BY md5(id::text)) AS n, count(*) OVER () AS m
    FROM cases WHERE user_sub = '{USER}'
)
UPDATE cases SET created_at = cases.created_at - (1 - spread.n::float / spread.m) * interval '{WEEKS} weeks'
FROM spread WHERE cases.user_sub = '{USER}' AND cases.id = spread.id
"""  # noqa: S608 - our own words


async def _fill(settings: Settings, service: OwnService) -> None:
    async with owner_url(settings) as url, service.client(USER) as http:
        await run_with_memory(http, url, House(31, TASKS))
        for number in range(TASKS // 3):
            body = {"agent": AGENT, "task": f"Look at the size of table {number}", "outcome": "success"}
            steps = [{"tool": "sql", "input": "SELECT 1", "status": "ok"}] * (8 + number % 5)
            told = {"reward": 0.5 + number % 3 / 8, "reward_source": "metric", "tool_traces": steps}
            (await http.post("/v1/retain", json=body | told)).raise_for_status()
        turns = [{"role": "user", "content": text} for text in SAID]
        (await http.post("/v1/sessions/monday/turns", json={"agent": AGENT, "turns": turns})).raise_for_status()
        for entry in KNOWN:
            (await http.post("/v1/knowledge", json={"agent": AGENT, **entry})).raise_for_status()
        steps = [{"number": number, **step} for number, step in enumerate(STEPS, 1)]
        run = {"agent": AGENT, "task": "Try five times to send an invoice", "steps": steps}
        (await http.post(f"/v1/runs/{RUN}/steps", json=run)).raise_for_status()
        while (await http.get("/v1/cases", params={"status": "pending", "limit": 1})).json()["cases"]:
            pass
        owner = await asyncpg.connect(dsn(url))
        await owner.execute(_SPREAD)
        await owner.close()
    async with running(settings) as runtime, runtime.database.as_user(USER, datetime.now(UTC)) as connection:
        await lifecycle.add(connection, USER, AGENT, stored("serving"))
        await lifecycle.add(connection, USER, AGENT, stored("candidate"))
        verdict = judge(*two_arms(uplift=0.01), GateSettings(resamples=400)).as_json()
        for row in await lifecycle.live_policies(connection, USER, AGENT):
            await lifecycle.set_columns(connection, row, verdict=verdict)
        await add_weeks(connection, USER, AGENT, datetime.now(UTC))
        await write_shared(
            runtime.database,
            AGENT,
            [KnowledgeWritten.model_validate({"agent": AGENT, **each}) for each in SHARED],
            Author("operator", "operator", datetime.now(UTC)),
        )


async def _pages(service: OwnService) -> dict[str, str]:
    async with httpx.AsyncClient(base_url=service.base_url, headers=service.headers(USER), timeout=60) as http:
        decisions = (await http.get("/v1/decisions", params={"agent": AGENT})).json()["decisions"]
        decision = next(each["retrieval_id"] for each in decisions if len(each["case_ids"]) > 2)
        cases = (await http.get("/v1/cases", params={"agent": AGENT, "limit": 100})).json()["cases"]
        case = next(each["case_id"] for each in cases if each["error_count"] and each["reuse_count"])
        procedures = (await http.get("/v1/procedures", params={"agent": AGENT, "kind": "script"})).json()["procedures"]
    return {
        "overview": "/console",
        "decisions": "/console/decisions",
        "decision": f"/console/decisions/{decision}",
        "bank": "/console/bank",
        "search": "/console/bank?q=Add+a+column+to+the+orders+table",
        "case": f"/console/cases/{case}",
        "procedures": "/console/procedures",
        "procedure": f"/console/procedures/{procedures[0]['id']}",
        "tools": "/console/tools",
        "tool": "/console/tool?name=sql",
        "sessions": "/console/sessions",
        "session": "/console/session?name=monday",
        "facts": "/console/facts",
        "knowledge": "/console/knowledge",
        "shared-knowledge": "/console/shared-knowledge",
        "runs": "/console/runs",
        "run": f"/console/runs/{RUN}",
        "policy": "/console/policy",
        "known": "/console/known",
        "user": "/console/user",
        "installation": "/console/installation",
        "problem": f"/console/cases/{uuid4()}",
    }


async def _shoot(page: Page, file: Path, *, whole: bool) -> None:
    await page.screenshot(path=file, type="png", full_page=whole)
    with Image.open(file) as picture:
        picture.quantize(COLOURS).save(file, optimize=True)


async def main(folder: Path, *, whole: bool) -> None:
    """Fills a bank, and takes each page's picture in both colour schemes."""
    async with AsyncExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="casebank-", ignore_cleanup_errors=True)))
        settings = Settings(home=home)
        service = await stack.enter_async_context(own_service(settings))
        await _fill(settings, service)
        pages = await _pages(service)
        now = datetime.now(UTC)
        visit = Link(user_sub=USER, made_at=now, is_operator=True).visit()
        cookie: Any = {
            "name": COOKIE,
            "value": VisitSeal(settings).seal(visit),
            "domain": "127.0.0.1",
            "path": ROOT,
        }
        driver = await stack.enter_async_context(async_playwright())
        browser = await driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        before = {"sign-in": SIGN_IN, "link": link(settings, service.base_url, USER, is_operator=False)}
        for scheme in SCHEMES:
            context = await browser.new_context(base_url=service.base_url, viewport=SIZE, color_scheme=scheme)
            page = await context.new_page()
            for name, path in (before | pages).items():
                if name not in before:
                    await context.add_cookies([cookie])
                await page.goto(path)
                await _shoot(page, folder / f"{name}-{scheme}.png", whole=whole)
        await page.goto("/console/known")
        await page.get_by_label("Type your name").fill(USER)
        await page.get_by_role("button", name="Delete all my data").click()
        for scheme in SCHEMES:
            await page.emulate_media(color_scheme=scheme)
            await _shoot(page, folder / f"receipt-{scheme}.png", whole=whole)
        await browser.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), whole="whole" in sys.argv[2:]))
