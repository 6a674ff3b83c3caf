"""Compares an agent with and without memory, task by task."""

import sys

from app.cli import cli

if __name__ == "__main__":
    cli(["experiment", *sys.argv[1:]])
