"""Whether the protocol is there: the package `mcp` takes a second and 20 MiB, which only who asked for it pays."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from app.intake.route import Intake
from retrieval.errors import CasebankError

if TYPE_CHECKING:
    from app.mcp.over_http import McpOverHttp

HOW = "the Model Context Protocol needs an extra: pip install 'casebank[mcp]'"


class McpNotInstalled(CasebankError):
    """The package that speaks the protocol is not installed here."""


def is_installed() -> bool:
    """Returns whether the package is there."""
    return find_spec("mcp") is not None


@asynccontextmanager
async def mcp_if_installed(intake: Intake) -> AsyncIterator["McpOverHttp | None"]:
    """Yields what answers over HTTP, or None where the package is missing."""
    if not is_installed():
        yield None
        return
    from app.mcp.over_http import mcp_over_http  # noqa: PLC0415 - as the head of this file says

    async with mcp_over_http(intake) as served:
        yield served
