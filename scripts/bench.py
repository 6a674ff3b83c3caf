"""Measures speed and memory, as ratios within one run."""

import sys

from app.cli import cli

if __name__ == "__main__":
    cli(["bench", *sys.argv[1:]])
