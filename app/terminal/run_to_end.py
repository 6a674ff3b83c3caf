"""Runs what a command does to its end; what casebank expects to go wrong is one line, and never a traceback."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import NoReturn, TypeVar

import typer
import uvloop
from rich.console import Console

from app.wrong_settings import WrongSettings
from retrieval.errors import CasebankError

EXPECTED = (CasebankError, WrongSettings, ValueError, OSError)
"""What a person can put right who reads the one line that it says."""

Result = TypeVar("Result")


def run_to_end(work: Coroutine[object, None, Result]) -> Result:
    """Returns what the work does; an expected error is one line on standard error and exit status 1."""
    try:
        return uvloop.run(work)
    except EXPECTED as error:
        refuse(error)


def refuse(error: Exception) -> NoReturn:
    """Ends the command with what the error says: one line on standard error, or one for each wrong setting."""
    said = str(error).replace("\n", "\ncasebank: ") if isinstance(error, WrongSettings) else str(error)
    Console(stderr=True, soft_wrap=True).print(f"casebank: {said}", style="red", markup=False, highlight=False)
    raise typer.Exit(1) from None


async def until_told_to_stop(work: Coroutine[object, None, None]) -> None:
    """Does what never ends by itself until SIGTERM, SIGINT or SIGHUP; then it is cancelled, and its clean-up awaited.

    The event loop hands the signal on between two steps. A handler that raises where the signal finds the program
    would be lost in a callback of the garbage collector or of a C extension, and the process never end.
    """
    task = asyncio.ensure_future(work)
    told: list[signal.Signals] = []

    def stop(number: signal.Signals) -> None:
        told.append(number)
        task.cancel()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop, number)
    try:
        await task
    except asyncio.CancelledError:
        if not told:
            raise
