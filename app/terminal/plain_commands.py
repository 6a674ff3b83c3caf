"""Commands whose modules are imported when called, and that report wrong settings and errors of the system in lines."""

import gc
from collections.abc import Callable
from importlib import import_module
from typing import Any

from typer.core import TyperCommand, TyperGroup

from app.wrong_settings import WrongSettings


class PlainCommand(TyperCommand):
    """A command alone."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the command."""
        return _plainly(super().invoke, ctx)


class PlainGroup(TyperGroup):
    """A group of commands."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the command that was named."""
        return _plainly(super().invoke, ctx)


def _plainly(invoke: Callable[[Any], Any], context: Any) -> Any:
    try:
        return invoke(context)
    except BrokenPipeError:  # the reader went away: click ends the command in silence
        raise
    except (WrongSettings, OSError) as error:  # imported here: the list of all commands is quicker without it
        imported("app.terminal.run_to_end").refuse(error)


def imported(module: str) -> Any:
    """Imports a module with the garbage collector off, which would take about a tenth of a start, and returns it."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        return import_module(module)
    finally:
        if was_on:
            gc.enable()
