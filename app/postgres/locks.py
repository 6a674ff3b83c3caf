"""Locks on files beside a server's data: its users, the process that starts or stops it, and its life.

    home/postgres.turn    locked by the process that starts or stops the server
    home/postgres.users   locked, shared, by every process that uses the server
    home/postgres.alive   locked by the server: it inherits the open file, as do its backends

The kernel drops a process's locks when it dies, so dead processes are never counted, and a reused pid
is never taken for the server.
"""

import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

threads = threading.RLock()
"""Lock of the one thread of this process that starts or stops a server."""

_seats: dict[Path, int] = {}  # data folder → the open file that holds this process's shared lock


@contextmanager
def turn(data: Path) -> Iterator[None]:
    """Keeps other processes from starting or stopping this server during the block."""
    file = _locked(data.with_suffix(".turn"), fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(file)


def join(data: Path) -> bool:
    """Adds this process to the users of the server, and returns whether it is new among them."""
    if data in _seats:
        return False
    _seats[data] = _locked(data.with_suffix(".users"), fcntl.LOCK_SH)
    return True


def is_alone(data: Path) -> bool:
    """Returns whether this process is the only user of the server; to be called in its `turn`."""
    try:
        fcntl.flock(_seats[data], fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        return True
    finally:
        fcntl.flock(_seats[data], fcntl.LOCK_SH)


def leave(data: Path, stop: Callable[[Path], None]) -> None:
    """Removes this process from the users, after stopping the server if it was the last one."""
    seat = _seats.pop(data)
    try:
        fcntl.flock(seat, fcntl.LOCK_EX | fcntl.LOCK_NB)
        stop(data)
    except BlockingIOError:
        pass  # another process still uses it
    finally:
        os.close(seat)


def joined() -> list[Path]:
    """Returns the data folders of the servers that this process uses."""
    return list(_seats)


def life(data: Path) -> int | None:
    """Returns the open file with the lock that a server inherits; None while a process of a server has it."""
    try:
        return _locked(data.with_suffix(".alive"), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return None


def _locked(path: Path, how: int) -> int:
    """Returns an open file that holds the lock, until it is closed."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, how)
    except BaseException:
        os.close(file)
        raise
    return file


def _forget() -> None:
    """Closes a forked child's copies of its parent's locks."""
    while _seats:
        os.close(_seats.popitem()[1])


os.register_at_fork(after_in_child=_forget)
