"""Runs a command's work to its end, or a service; an expected error is one line, and never a traceback."""

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import wraps
from typing import NoReturn, ParamSpec, TypeVar

import asyncpg
import typer
import uvloop
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.terminal.plain_console import notice
from app.wrong_settings import WrongSettings
from retrieval.database.database import raise_own
from retrieval.errors import CasebankError

EXPECTED = (CasebankError, WrongSettings, ValueError, OSError)
"""Errors that the reader of their message can put right."""

Result = TypeVar("Result")
Options = ParamSpec("Options")


def run_to_end(work: Coroutine[object, None, Result]) -> Result:
    """Returns the result of the work; an expected error is one line on standard error and exit status 1."""
    try:
        return uvloop.run(work)
    except BrokenPipeError:  # the reader of the output went away: click ends the command in silence
        raise
    except EXPECTED as error:
        refuse(error)
    except asyncpg.PostgresError as error:  # of a connection of its own, which no pool translates
        try:
            raise_own(error)
        except CasebankError as own:
            refuse(own)
        raise


def runs_to_end(command: Callable[Options, Coroutine[object, None, Result]]) -> Callable[Options, Result]:
    """Returns an asynchronous command as typer calls it; see ``run_to_end``."""

    @wraps(command)
    def called(*arguments: Options.args, **options: Options.kwargs) -> Result:
        return run_to_end(command(*arguments, **options))

    return called


def refuse(error: Exception) -> NoReturn:
    """Ends the command with the error's message: one line on standard error, or one for each wrong setting."""
    message = str(error).replace("\n", "\ncasebank: ") if isinstance(error, WrongSettings) else str(error)
    notice(message or "the database does not answer", style="red")  # a timeout has no words
    raise typer.Exit(1) from None


async def until_told_to_stop(work: Coroutine[object, None, None]) -> None:
    """Runs endless work until SIGTERM, SIGINT or SIGHUP; then cancels it and waits for its clean-up.

    The event loop handles the signal between two steps. An error that a handler of Python raises would be lost in
    a callback of the garbage collector or of a C extension, and the process would never end.
    """
    task = asyncio.ensure_future(work)
    signals: list[signal.Signals] = []

    def stop(number: signal.Signals) -> None:
        signals.append(number)
        task.cancel()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop, number)
    try:
        await task
    except asyncio.CancelledError:
        if not signals:
            raise


@dataclass(frozen=True, slots=True)
class PlainRefusal:
    """Passes everything on; shortens the message of a failed start to the sentence of an expected error."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers with the app's answer."""

        async def say(message: Message) -> None:
            # it is sent while the error is handled, so the error is at hand
            if message["type"] == "lifespan.startup.failed" and isinstance(error := sys.exception(), EXPECTED):
                message = {**message, "message": str(error)}
            await send(message)

        await self.app(scope, receive, say if scope["type"] == "lifespan" else send)
