"""``python -m app.training``: trains candidates, judges those on trial, watches over those that serve."""

import typer

from app.training.command import main

if __name__ == "__main__":
    typer.run(main)
