"""``python -m app.training``: trains candidates, judges those on trial, watches over those that serve."""

import sys

import typer

from app.terminal.plain_commands import PlainCommand, imported

if __name__ == "__main__":
    try:
        main = imported("app.training.command").main
    except KeyboardInterrupt:  # amid the imports; later, the program itself ends without a traceback
        sys.exit(130)
    program = typer.Typer(add_completion=False)
    program.command(cls=PlainCommand)(main)
    program(prog_name="casebank train")  # which hands its words on to here
