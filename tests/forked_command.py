"""A program that is a fork: asks the fork server at that socket for the command and ends as the command ends.

    python -IS forked_command.py SOCKET WORDS

It needs nothing but the standard library, and so starts in no time.
"""

import json
import os
import signal
import socket
import sys


def main() -> int:
    """Runs the command of these words on this process's standard input, output and error."""
    command = {"words": sys.argv[2:], "environment": dict(os.environ), "folder": os.getcwd()}  # noqa: PTH109 - no import
    answers = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    answers.connect(sys.argv[1])
    socket.send_fds(answers, [json.dumps(command).encode()], [0, 1, 2])
    pid = int(answers.recv(64))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda received, _frame: os.kill(pid, received))
    code = os.waitstatus_to_exitcode(int(answers.recv(64)))
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
