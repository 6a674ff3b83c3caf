"""``python -m examples.experiment``."""

import typer

from examples.experiment.command import experiment

if __name__ == "__main__":
    typer.run(experiment)
