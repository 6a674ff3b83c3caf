"""``python -m app.training``: trains candidates, judges those on trial, watches over those that serve."""

import typer

from app.training.command import main

typer.run(main)
