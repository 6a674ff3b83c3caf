"""Memory of a serving process."""

from pathlib import Path

import httpx
import psutil

from app.processes.own_service import own_service
from bench.bank import filled
from bench.fill import AGENT, tasks
from bench.measure import Measurement

REQUESTS = 300
MEGABYTE = 1_000_000


async def process(home: Path) -> list[Measurement]:
    """Measures the resident memory of a service after some hundred retrieves and retains."""
    async with filled(home, users=50) as bank, own_service(bank.settings) as running:
        headers = running.headers("user-1")
        async with httpx.AsyncClient(base_url=running.base_url, headers=headers, timeout=30) as client:
            for task in tasks(6, REQUESTS):
                await client.post("/v1/retrieve", json={"agent": AGENT, "query": task})
                await client.post("/v1/retain", json={"agent": "other", "task": task, "outcome": "success"})
        resident = psutil.Process(running.pid).memory_info().rss / MEGABYTE
    detail = f"after {REQUESTS} retrieves and {REQUESTS} retains, worker and embedder in the process"
    return [Measurement("API process resident", resident, "MB", detail, aim=220)]
