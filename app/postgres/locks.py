"""Who uses a server, who starts or stops it just now, and whether it lives: locks on files beside its data.

    home/postgres.turn    locked by whoever starts or stops the server just now
    home/postgres.users   locked, shared, by every process that uses the server
    home/postgres.alive   locked by the server: it inherits the open file, as do its backends

The kernel drops a process's locks however it dies, so nobody dead is ever counted, and no pid that
another process has by now is taken for the server.
"""

import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

threads = threading.RLock()
"""Held by the one thread of this process that starts or stops a server."""

_seats: dict[Path, int] = {}  # data folder → the open file that holds this process's shared lock


@contextmanager
def turn(data: Path) -> Iterator[None]:
    """Holds every other process that would start or stop this server."""
    file = _locked(data.with_suffix(".turn"), fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(file)


def join(data: Path) -> bool:
    """Takes this process's place among the users of the server, and returns whether it had none before."""
    if data in _seats:
        return False
    _seats[data] = _locked(data.with_suffix(".users"), fcntl.LOCK_SH)
    return True


def leave(data: Path, stop: Callable[[Path], None]) -> None:
    """Gives up this process's place, having stopped the server if that was the last one."""
    seat = _seats.pop(data)
    try:
        fcntl.flock(seat, fcntl.LOCK_EX | fcntl.LOCK_NB)
        stop(data)
    except BlockingIOError:
        pass  # somebody else still uses it
    finally:
        os.close(seat)


def joined() -> list[Path]:
    """Returns the data folders of the servers that this process uses."""
    return list(_seats)


def life(data: Path) -> int | None:
    """The open file with the lock that a server is to inherit; None while any process of a server has it."""
    try:
        return _locked(data.with_suffix(".alive"), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return None


def _locked(path: Path, how: int) -> int:
    """An open file that holds the lock; closing it gives the lock back."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, how)
    except BaseException:
        os.close(file)
        raise
    return file


def _forget() -> None:
    """Closes a forked child's copies of the locks: the places are its parent's."""
    while _seats:
        os.close(_seats.popitem()[1])


os.register_at_fork(after_in_child=_forget)
