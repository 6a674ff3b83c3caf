"""Loads the package `mcp` on first use, because it takes a second and 20 MiB."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from app.edge.errors import McpNotInstalled
from app.edge.intake.route import Intake

if TYPE_CHECKING:
    from app.mcp.over_http import McpOverHttp

HOW = "the Model Context Protocol needs an extra: pip install 'casebank[mcp]'"


def is_installed() -> bool:
    """Returns whether the package `mcp` is installed."""
    return find_spec("mcp") is not None


@dataclass(slots=True)
class McpWhenAsked:
    """The server over HTTP, loaded and started by its first request."""

    _intake: Intake
    _running: AsyncExitStack
    _served: "McpOverHttp | None" = None
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def served(self) -> "McpOverHttp":
        """Returns the running server.

        Raises:
            McpNotInstalled: the package is missing.
        """
        if not is_installed():
            raise McpNotInstalled(HOW)
        async with self._one_at_a_time:
            if self._served is not None:
                return self._served
            over_http = await asyncio.to_thread(import_module, "app.mcp.over_http")
            served: McpOverHttp = await self._running.enter_async_context(over_http.mcp_over_http(self._intake))
            self._served = served
            return served


@asynccontextmanager
async def mcp_when_asked(intake: Intake) -> AsyncIterator[McpWhenAsked]:
    """Yields a server that starts with its first request, and stops it at the end of the block."""
    async with AsyncExitStack() as running:
        yield McpWhenAsked(intake, running)
