"""The program of a side process: works on what it is sent, one thing at a time, until nobody sends any more.

A message is its length in eight bytes and a pickle; in comes a function with its arguments, out goes what came of it.
It gives way to whoever serves requests, and has none of their settings and secrets.
"""

import os
import pickle
import signal
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from types import FrameType
from typing import BinaryIO

import psutil

from app.edge.intake.errors import BodyTooCostly
from retrieval.errors import CasebankError

LENGTH = struct.Struct(">Q")
NICENESS = 5
MOST_RESIDENT = 400 * 2**20
"""Bytes: a process that is larger when it has answered ends, so that one body's memory is not kept for good."""

TOO_LONG = "to check and redact this request takes too long; send less at once"


class Broke(Exception):
    """The work ended with an error that nobody expected; only the error's type is told, its text may quote a body."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a piece of work; ``last``: the process ends now, and whoever has more work needs another."""

    result: object = None
    error: Exception | None = None
    last: bool = False


def main() -> None:
    """Answers message after message."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # they end with the service, which closes the pipe
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, _out_of_time)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whatever the work prints is no answer
    for module in sys.argv[1:]:
        import_module(module)
    os.nice(NICENESS)  # not while it starts, which somebody waits for
    _write(answers, Answer())  # it is ready
    while message := _read(sys.stdin.buffer):
        answer = _answer(*pickle.loads(message))  # noqa: S301 - from the service itself
        _write(answers, answer)
        if answer.last:
            return


def _read(pipe: BinaryIO) -> bytes:
    head = pipe.read(LENGTH.size)
    return pipe.read(LENGTH.unpack(head)[0]) if head else b""


def _write(pipe: BinaryIO, answer: Answer) -> None:
    data = pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
    pipe.write(LENGTH.pack(len(data)) + data)
    pipe.flush()


def _answer(budget_s: float, work: Callable[..., object], arguments: tuple[object, ...]) -> Answer:
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
    return Answer(result, error, psutil.Process().memory_info().rss > MOST_RESIDENT)


def _out_of_time(_signal: int, _frame: FrameType | None) -> None:
    raise BodyTooCostly(TOO_LONG)
