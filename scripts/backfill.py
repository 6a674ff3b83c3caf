"""Retains old runs from a file of JSON lines: `casebank backfill`, for cron."""

import sys

from app.cli import cli

if __name__ == "__main__":
    cli(["backfill", *sys.argv[1:]])
