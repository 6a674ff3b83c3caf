"""Commands that report wrong settings with a line for each, an error of the system with one, and no traceback."""

from collections.abc import Callable
from typing import Any

from typer.core import TyperCommand, TyperGroup

from app.terminal.imported import imported
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
