"""A process that has imported every command and forks: a command starts in milliseconds, without seconds of imports.

    python -m tests.fork_server NUMBER

A message on the socket of that number asks for one command: JSON with its words, environment and folder, and four
descriptors: its standard input, output and error, and a socket on which the server answers the command's pid and, when
the command has ended, its wait status. The fork has no thread, no connection and no loop yet, only modules.
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

from app.cli import COMMANDS, cli
from app.providers.wordllama import WordLlamaEmbedder
from app.terminal.plain_commands import imported
from writer.facts.extract import read

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


def _words_of_fork(control: socket.socket, added: dict[str, str]) -> list[str]:
    """Returns the words of the command in its fork, and no words in the server when it is to end."""
    children: dict[int, tuple[int, socket.socket]] = {}  # by the descriptor that becomes readable at the child's end
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's is for the tests
    selector = selectors.DefaultSelector()
    selector.register(control, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fd in children:
                selector.unregister(key.fd)
                pid, answers = children.pop(key.fd)
                os.close(key.fd)
                _answer(answers, os.waitpid(pid, 0)[1])
                answers.close()
                continue
            message, descriptors, _, _ = socket.recv_fds(control, MOST_BYTES, 4)
            if not message:
                return []
            answers = socket.socket(fileno=descriptors[3])
            pid = os.fork()
            if pid == 0:
                for each in (selector, control, answers, *(answers for _, answers in children.values())):
                    each.close()
                for descriptor in children:
                    os.close(descriptor)
                return _become(json.loads(message), descriptors[:3], added)
            for descriptor in descriptors[:3]:
                os.close(descriptor)
            _answer(answers, pid)
            descriptor = os.pidfd_open(pid)
            children[descriptor] = (pid, answers)
            selector.register(descriptor, selectors.EVENT_READ)


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
