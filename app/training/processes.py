"""Trainings: processes of their own, one at a time; of those that the API starts, one a user."""

import asyncio
import sys
from dataclasses import dataclass, field
from typing import Literal

from app.settings import Settings
from retrieval.telemetry import log


class TrainingFailed(Exception):
    """A training ended with an error."""


@dataclass(slots=True)
class Trainings:
    """The trainings under way."""

    settings: Settings
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _running: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    def start(self, user_sub: str, agent_key: str) -> Literal["started", "running"]:
        """Starts a training of the profile, unless one of the user's waits or runs."""
        if user_sub in self._running:
            return "running"
        self._running[user_sub] = task = asyncio.create_task(self._train(user_sub, agent_key))
        task.add_done_callback(lambda _ended: self._running.pop(user_sub, None))
        return "started"

    async def train_all(self) -> None:
        """Trains every profile that has learned enough.

        Raises:
            TrainingFailed: the process that trains did not end well.
        """
        if status := await self._run():
            raise TrainingFailed(f"it ended with status {status}; `casebank train` shows why")

    async def close(self) -> None:
        """Ends every training; what had not been stored is as if it had never begun."""
        for task in list(self._running.values()):
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _train(self, user_sub: str, agent_key: str) -> None:
        await self._run(f"--user={user_sub}", f"--agent={agent_key}")

    async def _run(self, *options: str) -> int:
        """Runs one training to its end and returns its status; a cancelled one is killed, and stored all or nothing."""
        quiet = asyncio.subprocess.DEVNULL
        async with self._turn:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "app.training", *options),
                stdout=quiet,
                stderr=quiet,
                env=self.settings.as_environment(),
            )
            try:
                status = await process.wait()
            except asyncio.CancelledError:
                process.kill()
                await process.wait()
                raise
        log.info("training.ended", status=status)
        return status
