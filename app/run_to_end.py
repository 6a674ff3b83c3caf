"""Runs what a command does to its end; what casebank expects to go wrong is one line, and never a traceback."""

from collections.abc import Coroutine
from typing import TypeVar

import typer
import uvloop
from rich.console import Console

from retrieval.errors import CasebankError

EXPECTED = (CasebankError, ValueError, OSError)
"""What a person can put right who reads the one line that it says."""

Result = TypeVar("Result")


def run_to_end(work: Coroutine[object, None, Result]) -> Result:
    """Returns what the work does; an expected error is one line on standard error and exit status 1."""
    try:
        return uvloop.run(work)
    except EXPECTED as error:
        Console(stderr=True, soft_wrap=True).print(f"casebank: {error}", style="red", markup=False)
        raise typer.Exit(1) from None
