"""Loads the package `mcp` on first use, because it takes a second and 20 MiB."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from starlette.requests import Request
from starlette.responses import Response

from app.edge.errors import McpNotInstalled
from app.memory_tools.asking import Asking

HOW = "the Model Context Protocol needs an extra: pip install 'casebank[mcp]' in casebank's environment"
Answer = Callable[[Request, bytes, Asking], Awaitable[Response]]


def is_installed() -> bool:
    """Returns whether the package `mcp` is installed."""
    return find_spec("mcp") is not None


async def answer_over_http() -> Answer:
    """Returns the function that answers a message over HTTP, ``app.mcp.over_http.answer``.

    Raises:
        McpNotInstalled: the package is missing.
    """
    if not _answer.cache_info().currsize:
        if not is_installed():
            raise McpNotInstalled(HOW)
        await asyncio.to_thread(_answer)
    return _answer()


@cache
def _answer() -> Answer:
    answer: Answer = import_module("app.mcp.over_http").answer
    return answer
