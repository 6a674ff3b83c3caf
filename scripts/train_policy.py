"""Trains, judges and watches over the learned policies: `casebank train`, for cron every night."""

import sys

from app.cli import cli

if __name__ == "__main__":
    cli(["train", *sys.argv[1:]])
