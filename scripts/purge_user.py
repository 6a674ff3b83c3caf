"""Erases everything of a user and prints the receipt: `casebank purge`, for cron."""

import sys

from app.cli import cli

if __name__ == "__main__":
    cli(["purge", *sys.argv[1:]])
