"""Shows what memory changes: a scripted database operator, without and with casebank."""

import sys

from app.cli import cli

if __name__ == "__main__":
    cli(["demo", *sys.argv[1:]])
