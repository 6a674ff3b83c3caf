"""A process that has imported every command and forks: a command starts in milliseconds, without seconds of imports.

    python -m tests.fork_server NUMBER

Each connection to the listening socket of that number asks for one command: JSON with its words, environment and
folder, and three descriptors: its standard input, output and error. The server answers the command's pid and, when the
command has ended, its wait status; it kills the command if the connection ends before. The fork has no thread, no
connection and no loop yet, only modules. The server ends with its own standard input.
"""

import atexit
import gc
import json
import os
import selectors
import signal
import socket
import sys
import threading
from contextlib import suppress
from datetime import date

from app.cli import COMMANDS, cli, imported
from app.providers.wordllama import WordLlamaEmbedder
from writer.facts.extract import read
from writer.privacy import numbers

MOST_BYTES = 1 << 20
"""Size of the largest message."""


def main() -> None:
    """Forks for every message until the other side is gone; runs the command in each fork."""
    before = dict(os.environ)
    gc.disable()  # imported objects stay
    for command in COMMANDS.values():
        imported(command.module)
    WordLlamaEmbedder()  # which reads weights that every service uses
    read("I live in Rome. I went there yesterday.", date(2026, 1, 2))  # which compiles the patterns of facts
    numbers.warm_up()
    gc.freeze()
    added = {name: value for name, value in os.environ.items() if name not in before}
    words = _words_of_fork(socket.socket(fileno=int(sys.argv[1])), added)
    if words:
        sys.argv = words
        try:
            cli()
        except SystemExit as end:
            _exit(end)


def _exit(end: SystemExit) -> None:
    """Ends the fork as the interpreter does, but lets its memory go at once: to free it copies it."""
    threading._shutdown()  # noqa: SLF001 - the interpreter's own first steps
    atexit._run_exitfuncs()  # noqa: SLF001
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(end.code if isinstance(end.code, int) else int(end.code is not None))


def _words_of_fork(listener: socket.socket, added: dict[str, str]) -> list[str]:
    """Returns the words of the command in its fork, and no words in the server when it is to end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's is for the tests
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    selector.register(sys.stdin, selectors.EVENT_READ)
    while True:
        (key, _), *_ = selector.select()  # which finds the others again
        if key.fileobj is sys.stdin:
            return []
        if key.data is None:
            answers, _ = listener.accept()
            message, descriptors, _, _ = socket.recv_fds(answers, MOST_BYTES, 3)
            pid = os.fork()
            if pid == 0:
                answers.close()
                _close(selector)
                return _become(json.loads(message), descriptors, added)
            for descriptor in descriptors:
                os.close(descriptor)
            _answer(answers, pid)
            selector.register(answers, selectors.EVENT_READ, (pid, answers))
            selector.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, answers))
            continue
        pid, answers = key.data
        selector.unregister(key.fileobj)
        if key.fileobj is answers:  # whoever asked is gone
            os.kill(pid, signal.SIGKILL)
            continue
        os.close(key.fd)
        _answer(answers, os.waitpid(pid, 0)[1])
        if answers in selector.get_map():
            selector.unregister(answers)
        answers.close()


def _close(selector: selectors.BaseSelector) -> None:
    """Closes what the server listens to."""
    for key in list(selector.get_map().values()):
        if isinstance(key.fileobj, socket.socket):
            key.fileobj.close()
        elif key.fileobj is not sys.stdin:
            os.close(key.fd)
    selector.close()


def _answer(answers: socket.socket, number: int) -> None:
    with suppress(BrokenPipeError):  # the one who asked is gone
        answers.sendall(b"%d" % number)


def _become(command: dict[str, object], standard: list[int], added: dict[str, str]) -> list[str]:
    """Makes this process the one that a start of the command would have made, and returns its words."""
    for number, descriptor in enumerate(standard):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(added | command["environment"])
    os.chdir(command["folder"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.enable()
    return command["words"]


if __name__ == "__main__":
    main()
