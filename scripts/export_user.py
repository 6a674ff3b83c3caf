"""Writes everything of a user to standard output, one JSON object a line: `casebank export`, for cron."""

import sys

from app.cli import cli

if __name__ == "__main__":
    cli(["export", *sys.argv[1:]])
