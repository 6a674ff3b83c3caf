"""Trainings of policies: each in a process of its own, one after the other; the API starts at most one a user.

home/training.log     output of the last training, readable by its owner alone
"""

import asyncio
import json
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal

from prometheus_client import Counter, Histogram

from app.processes.own_module import OWN_MODULE
from app.settings import Settings
from retrieval.telemetry import log

TRAININGS = Counter("casebank_trainings_total", "Trainings of a profile, by outcome or verdict", ["outcome"])
TO_GO = Histogram(
    "casebank_trial_decisions_to_go",
    "Rewarded decisions that a trial still takes, if all stays as it is, at each night's look",
    buckets=(100, 200, 500, 1_000, 2_000, 4_000),
)


class TrainingFailed(Exception):
    """A training ended with an error."""


@dataclass(slots=True)
class Trainings:
    """Starts trainings of policies, and follows them; one instance serves a process."""

    settings: Settings
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _running: dict[str, asyncio.Task[int]] = field(default_factory=dict)

    def start(self, user_sub: str, agent_key: str) -> Literal["started", "running"]:
        """Starts a training of the profile, unless the user has one that waits or runs."""
        if user_sub in self._running:
            return "running"
        profile = json.dumps({"user": user_sub, "agent": agent_key})
        self._running[user_sub] = task = asyncio.create_task(self._run(profile, "--profile-from-stdin"))
        task.add_done_callback(lambda _ended: self._running.pop(user_sub, None))
        return "started"

    async def train_all(self) -> None:
        """Trains every profile that has learned enough.

        Raises:
            TrainingFailed: the training process failed.
        """
        if status := await self._run():
            raise TrainingFailed(f"it ended with status {status}; {self._log} says why, or else the service's own log")

    async def close(self) -> None:
        """Ends every training; its results are stored whole or not at all."""
        for task in list(self._running.values()):
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    @property
    def _log(self) -> Path:
        return self.settings.home / "training.log"

    def _opened_log(self) -> BinaryIO:
        """Returns the opened file; where the home cannot be written, standard error, for the service's own log."""
        with suppress(OSError):
            self._log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._log.touch(mode=0o600)
            return self._log.open("wb")
        return os.fdopen(os.dup(2), "wb")

    async def _run(self, words: str = "", *options: str) -> int:
        """Runs one training to its end and returns its status; kills a cancelled one, which stores all or no results.

        ``words`` go to its standard input: every user of the machine can read a process's arguments.
        """
        piped = asyncio.subprocess.PIPE
        async with self._turn:
            with self._opened_log() as output:
                process = await asyncio.create_subprocess_exec(
                    *(*OWN_MODULE, "app.cli", "train", "--outcomes", *options),
                    stdin=piped,
                    stdout=piped,
                    stderr=output,
                    env=self.settings.as_environment(),
                )
                try:
                    printed, _ = await process.communicate(words.encode())
                except asyncio.CancelledError:
                    process.kill()
                    await process.wait()
                    raise
                output.write(printed)
        status = process.returncode or 0
        # profiles by outcome, and the decisions that each trial still needs; a failed training prints none
        report = {"outcomes": {}, "more": []} if status else json.loads(printed)
        for outcome, profiles in report["outcomes"].items():
            TRAININGS.labels(outcome).inc(profiles)
        for more in report["more"]:
            TO_GO.observe(more)
        log.info("training.ended", status=status, profiles=report["outcomes"])
        return status
