"""Measures what the policy learns, what the gate lets through, what poison does, and how long it takes."""

import sys

from app.cli import cli

if __name__ == "__main__":
    cli(["bench", "learning", *sys.argv[1:]])
