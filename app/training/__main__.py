"""``python -m app.training``: trains candidates, judges those on trial, watches over those that serve."""

import typer

from app.terminal.imported import imported
from app.terminal.plain_commands import PlainCommand

if __name__ == "__main__":
    program = typer.Typer(add_completion=False)
    program.command(cls=PlainCommand)(imported("app.training.command").main)
    program(prog_name="casebank train")  # which hands its words on to here
