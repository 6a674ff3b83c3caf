"""A program that is started again whenever it ends, as a supervisor would."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

RESTART_AFTER_S = 0.5
STOP_PATIENCE_S = 60.0


@dataclass
class Supervised:
    """A program that runs, is killed and is started again, until ``run`` is cancelled.

    Attributes:
        log: file of its standard error.
        ended_by_itself: the exit statuses with which it ended without having been killed.
    """

    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    ended_by_itself: list[int] = field(default_factory=list)
    _process: asyncio.subprocess.Process | None = None
    _killed: set[int] = field(default_factory=set)

    async def run(self) -> None:
        """Starts the program again and again; on cancellation it is asked to stop."""
        while True:
            await self._start()
            try:
                status = await self._running().wait()
            except asyncio.CancelledError:
                await self._stop()
                raise
            if self._running().pid not in self._killed:
                self.ended_by_itself.append(status)
            await asyncio.sleep(RESTART_AFTER_S)

    async def kill(self) -> None:
        """Kills the program with -9, and returns when it is dead; one that is down just now stays so."""
        process = self._process
        if process is not None and process.returncode is None:
            self._killed.add(process.pid)
            process.kill()
            await process.wait()

    async def _start(self) -> None:
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self.command, env=dict(self.environment), stdout=asyncio.subprocess.DEVNULL, stderr=log
            )

    def _running(self) -> asyncio.subprocess.Process:
        if self._process is None:
            raise RuntimeError("it was not started")
        return self._process

    async def _stop(self) -> None:
        process = self._running()
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_PATIENCE_S)
        except TimeoutError:
            process.kill()
            await process.wait()
