"""``python -m app.training``: trains candidates, judges those on trial, watches over those that serve."""

import typer

from app.imported import imported

if __name__ == "__main__":
    typer.run(imported("app.training.command").main)
