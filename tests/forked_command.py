"""The program `casebank` of a shell's commands: asks the fork server that `FORKS` names and ends as the command ends.

    python -IS forked_command.py WORDS

It needs nothing but the standard library, and so starts in no time.
"""

import json
import os
import signal
import socket
import sys


def main() -> int:
    """Runs the command of these words on this process's standard input, output and error."""
    server = socket.socket(fileno=int(os.environ.pop("FORKS")))
    command = {"words": sys.argv[1:], "environment": dict(os.environ), "folder": os.getcwd()}  # noqa: PTH109 - no import
    answers, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    socket.send_fds(server, [json.dumps(command).encode()], [0, 1, 2, theirs.fileno()])
    theirs.close()
    pid = int(answers.recv(64))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda received, _frame: os.kill(pid, received))
    code = os.waitstatus_to_exitcode(int(answers.recv(64)))
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
