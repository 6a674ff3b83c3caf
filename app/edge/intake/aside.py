"""Runs work that would block the event loop in a few side processes: with a time limit, one piece a user at once.

Processes and not threads: parsing, validating and matching hold Python's lock for as long as one call takes, and a
thread cannot be given up. Our own few lines and not a library's pool: those begin each process by importing the program
that runs, which is all of the service.
"""

import asyncio
import os
import pickle
import sys
from asyncio.subprocess import Process
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import TypeVar, cast
from weakref import WeakValueDictionary

from app.edge.intake import side_process
from app.edge.intake.errors import BodyTooCostly, Busy
from app.edge.intake.side_process import WorkResult

START_TIMEOUT_S = 60.0

HANDED_ON = ("LD_LIBRARY_PATH", "PATH", "TMPDIR")
"""Environment variables that a side process inherits; no setting and no secret."""

PROGRAM = f"from {side_process.__name__} import main; main()"  # as a module of its own, so that pickles find it

Result = TypeVar("Result")


@dataclass(slots=True)
class Aside:
    """Side processes: each is started when there is work, kept for the next piece, and killed if it takes too long."""

    processes: int
    budget_s: float
    """Longest processor time of one piece of work, in seconds."""
    given_up_after_s: float
    """Longest time of one piece of work by the clock, in seconds: a long call can delay the check of processor time."""
    patience_s: float
    """Longest wait of a piece of work for a free process, in seconds."""
    _places: asyncio.Semaphore = field(init=False)
    _turns: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    _idle: list[Process] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._places = asyncio.Semaphore(self.processes)

    async def run(self, user_sub: str, work: Callable[..., Result], *arguments: object) -> Result:
        """Returns the result of the work in another process; the work may not depend on this one.

        Raises:
            BodyTooCostly: the work took too long.
            Busy: its turn did not come in time.
            CasebankError: the work raised it.
        """
        turn = self._turns.setdefault(user_sub, asyncio.Lock())
        async with AsyncExitStack() as held:
            try:
                async with asyncio.timeout(self.patience_s):
                    await held.enter_async_context(turn)
                    await held.enter_async_context(self._places)
            except TimeoutError:
                raise Busy("too many large requests are under way") from None
            message = pickle.dumps((self.budget_s, work, arguments), pickle.HIGHEST_PROTOCOL)
            answer = await self._answer(message)
        if answer.error is not None:
            raise answer.error
        return cast("Result", answer.result)

    async def close(self) -> None:
        """Ends every idle process; those at work end when the service closes their pipe."""
        while self._idle:
            await _end(self._idle.pop())

    async def _answer(self, message: bytes) -> WorkResult:
        """Returns the answer of a process, which is kept for the next work unless it failed or this was its last."""
        while self._idle and self._idle[-1].returncode is not None:
            self._idle.pop()
        process = self._idle.pop() if self._idle else await _started()
        try:
            async with asyncio.timeout(self.given_up_after_s):
                stdin = cast("asyncio.StreamWriter", process.stdin)
                stdin.writelines([side_process.LENGTH.pack(len(message)), message])
                await stdin.drain()
                answer = await _received(process)
        except TimeoutError:
            raise BodyTooCostly(side_process.TOO_LONG) from None
        except (OSError, asyncio.IncompleteReadError):
            raise Busy("the process that checks large requests ended") from None
        else:
            if not answer.last:
                self._idle.append(process)
            return answer
        finally:
            if process not in self._idle:  # a later answer would be taken for another request's
                await _end(process)


async def _started() -> Process:
    """Returns a new process, which inherits the module path and HANDED_ON alone.

    Raises:
        Busy: the process did not start.
    """
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environment = {name: os.environ[name] for name in HANDED_ON if name in os.environ} | path
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROGRAM),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment,
    )
    try:
        async with asyncio.timeout(START_TIMEOUT_S):
            await _received(process)
    except (TimeoutError, asyncio.IncompleteReadError):
        await _end(process)
        raise Busy("the process that checks large requests does not start") from None
    except BaseException:
        await _end(process)
        raise
    return process


async def _received(process: Process) -> WorkResult:
    stdout = cast("asyncio.StreamReader", process.stdout)
    (length,) = side_process.LENGTH.unpack(await stdout.readexactly(side_process.LENGTH.size))
    answer: WorkResult = pickle.loads(await stdout.readexactly(length))  # noqa: S301 - our own process's
    return answer


async def _end(process: Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()
