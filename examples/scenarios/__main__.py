"""``python -m examples.scenarios NAME``."""

import typer

from examples.scenarios.command import scenario

if __name__ == "__main__":
    typer.run(scenario)
