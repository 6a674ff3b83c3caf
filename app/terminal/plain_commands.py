"""Commands whose modules are imported when called, and that report wrong settings and errors of the system in lines."""

import gc
from importlib import import_module
from typing import Any

from typer.core import TyperGroup

from app.wrong_settings import WrongSettings


class PlainGroup(TyperGroup):
    """The group of all commands."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the command that was named."""
        try:
            return super().invoke(ctx)
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
