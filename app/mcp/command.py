"""``casebank mcp``: serves the memory tools on standard input and output, for a program that starts its servers."""

from datetime import UTC, datetime

import typer

from app import logs
from app.jobs.jobs import beside
from app.mcp.installed import HOW, is_installed
from app.memory_tools.asking import Asking
from app.runtime import running
from app.settings import Settings
from app.terminal.command_line import Agent, User, checked
from app.terminal.run_to_end import run_to_end, until_told_to_stop
from app.terminal.which_database import tell_database
from writer.author import Author
from writer.privacy.names import nameable

ACTOR = "casebank mcp"
"""Actor of the tools' changes in the audit."""


def speak_mcp(user: User, agent: Agent) -> None:
    """Serve the memory tools by the Model Context Protocol on standard input and output; needs the extra `mcp`."""
    if not is_installed():
        raise typer.BadParameter(HOW)
    from app.mcp.stdio import serve_on_stdio  # noqa: PLC0415 - as app/mcp/installed.py says

    async def work() -> None:
        settings = Settings()
        tell_database(settings)
        async with running(settings) as runtime, beside([runtime.worker.run]):
            await serve_on_stdio(Asking(runtime, Author(user, ACTOR, datetime.now(UTC)), nameable(agent)))

    logs.quiet()
    checked(user)
    run_to_end(until_told_to_stop(work()))
