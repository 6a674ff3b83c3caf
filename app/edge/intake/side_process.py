"""The program of a side process: runs one function after another until its input ends.

A message is its length in eight bytes and a pickle: a function with its arguments comes in, a WorkResult goes out. The
process has a lower priority than the service, and lacks its settings and secrets.
"""

import os
import pickle
import signal
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import BinaryIO

import psutil

from app.edge.intake.errors import BodyTooCostly
from retrieval.errors import CasebankError

LENGTH = struct.Struct(">Q")
NICENESS = 5
MOST_RESIDENT = 400 * 2**20
"""Bytes of memory above which a process ends after its answer, so that one body's memory is not kept for good."""

TOO_LONG = "to check and redact this request takes too long; send less at once"


class Broke(Exception):
    """The work ended with an unexpected error; the message is the error's type, whose text could quote a body."""


@dataclass(frozen=True, slots=True)
class WorkResult:
    """Result or error of a piece of work; ``last``: the process ends after this answer."""

    result: object = None
    error: Exception | None = None
    last: bool = False


def main() -> None:
    """Answers one message after another."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # they end with the service, which closes the pipe
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, _out_of_time)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whatever the work prints is no answer
    _write(answers, WorkResult())  # it is ready
    niceness = NICENESS
    while head := sys.stdin.buffer.read(LENGTH.size):
        message = sys.stdin.buffer.read(LENGTH.unpack(head)[0])
        work = pickle.loads(message)  # noqa: S301 - from the service itself; imports what this work needs, and no more
        os.nice(niceness)  # not while it imports, which takes a second
        niceness = 0
        answer = _answer(*work)
        _write(answers, answer)
        if answer.last:
            return


def _write(pipe: BinaryIO, answer: WorkResult) -> None:
    data = pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
    pipe.write(LENGTH.pack(len(data)) + data)
    pipe.flush()


def _answer(budget_s: float, work: Callable[..., object], arguments: tuple[object, ...]) -> WorkResult:
    result: object = None
    error: Exception | None = None
    try:
        signal.setitimer(signal.ITIMER_PROF, budget_s)  # of the processor: waiting for it is no fault of the body
        try:
            result = work(*arguments)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except CasebankError as expected:
        error = expected.with_traceback(None)
    except Exception as unexpected:  # noqa: BLE001 - the next body must not wait for a new process
        error = Broke(type(unexpected).__name__)
    # As it is now: the highest that the system counts begins with what the service had when it started this process.
    return WorkResult(result, error, psutil.Process().memory_info().rss > MOST_RESIDENT)


def _out_of_time(_signal: int, _frame: FrameType | None) -> None:
    raise BodyTooCostly(TOO_LONG)
