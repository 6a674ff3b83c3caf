"""Shows what memory changes: the same database tasks without memory and with casebank."""

import sys

from app.cli import cli

if __name__ == "__main__":
    cli(["demo", *sys.argv[1:]])
