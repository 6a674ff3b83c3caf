"""Cost of the Model Context Protocol: a retrieve by it beside one over HTTP, in turn, by one client."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console

from app.mcp.installed import HOW, is_installed
from app.processes.own_service import OwnService, own_service
from bench.bank import WARM_UP, filled
from bench.fill import AGENT, tasks
from bench.measure import Measurement, interleaved, p50
from bench.read import SMALL

ROUNDS = 400
K, BUDGET = 4, 1_500
"""Slate and token budget of the tool `recall`."""
NEWER, OLDER = "2026-07-28", "2025-11-25"
"""Versions of the protocol without and with a handshake; the handshake is not measured."""
_OF_CLIENT = {"protocolVersion": NEWER, "clientCapabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


async def mcp(home: Path) -> list[Measurement]:
    """Measures retrieve by MCP (the tool `recall`, which looks for facts as well) against `POST /v1/retrieve`."""
    if not is_installed():
        Console(stderr=True).print(f"skipped: {HOW}", markup=False)
        return []
    async with (
        filled(home, SMALL, sealed=True) as bank,
        own_service(bank.settings) as running,
        httpx.AsyncClient(base_url=running.base_url, timeout=30) as client,
    ):
        calls = _Calls(client, running, list(tasks(5, ROUNDS + WARM_UP)))
        acts = calls.by_http, calls.as_tool, calls.by_mcp(NEWER), calls.by_mcp(OLDER)
        await interleaved(WARM_UP, *acts)
        http, tool, newer, older = map(p50, await interleaved(ROUNDS, *acts))
    return [
        Measurement("retrieve by MCP / by HTTP", newer / http, "x", _detail(newer, http, NEWER), aim=1.5),
        Measurement("the same, client of before 2026", older / http, "x", _detail(older, http, OLDER), aim=1.5),
        Measurement("recall by MCP / as a tool over HTTP", newer / tool, "x", _detail(newer, tool, NEWER)),
    ]


def _detail(one: float, other: float, version: str) -> str:
    return f"p50 {one:.2f} ms against {other:.2f} ms, {SMALL * 200:,} cases of {SMALL} profiles, {version}"


class _Calls:
    """One retrieve by each of the compared ways, each for another user, so that caches favour none of them."""

    def __init__(self, client: httpx.AsyncClient, running: OwnService, queries: list[str]) -> None:
        self._client, self._queries = client, queries
        self._headers = [running.headers(f"user-{number + 1}") for number in range(SMALL)]

    async def by_http(self, number: int) -> None:
        """Retrieves by the API."""
        body = {"agent": AGENT, "query": self._queries[number], "k": K, "token_budget": BUDGET}
        await self._post("/v1/retrieve", body, number)

    async def as_tool(self, number: int) -> None:
        """Retrieves by the tool's own route."""
        body = {"query": self._queries[number], "top_k": K}
        await self._post(f"/v1/memory-tools/recall?agent={AGENT}", body, number + SMALL // 4)

    def by_mcp(self, version: str) -> Callable[[int], Awaitable[None]]:
        """Returns a function that retrieves by that version of the protocol."""
        headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": version}
        more: dict[str, Any] = {}
        if version == NEWER:
            headers |= {"Mcp-Method": "tools/call", "Mcp-Name": "recall"}
            more = {"_meta": {f"io.modelcontextprotocol/{name}": value for name, value in _OF_CLIENT.items()}}

        async def call(number: int) -> None:
            arguments = {"query": self._queries[number], "top_k": K}
            params = {"name": "recall", "arguments": arguments, **more}
            message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
            shift = SMALL // 2 if version == NEWER else 3 * SMALL // 4
            answer = await self._post(f"/mcp?agent={AGENT}", message, number + shift, headers)
            if answer.json()["result"].get("isError"):
                raise AssertionError(f"the tool did not answer: {answer.text}")

        return call

    async def _post(
        self, path: str, body: dict[str, Any], number: int, headers: dict[str, str] | None = None
    ) -> httpx.Response:
        of_user = self._headers[number % SMALL]
        answer = await self._client.post(path, json=body, headers={**of_user, **(headers or {})})
        return answer.raise_for_status()
