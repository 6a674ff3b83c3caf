"""Finds errors in any line of a command's output, because a shell may run many commands in one call.

The output of a command that only shows files may contain errors as content; there only the program's own error counts.
"""

import re2

from writer.analysis.causes_below import is_generic
from writer.analysis.command_goals import mains
from writer.analysis.command_names import READERS
from writer.analysis.error_output import SHORT_CHARS, TRACEBACK, both_ends, exception_in

MOST_LINES = 5
"""Number of first lines of an output that are searched for a program's own error, as in ``sed: no such option``."""

_SHELL = re2.compile(
    r"(?i)^(?:[\w./-]{0,80}(?:bash|sh|zsh): )?(?:line \d+: |\d+: )?[^\n:]{1,120}: (?:command not found|not found"
    r"|permission denied"
    r"|no such file or directory|is a directory|not a directory|cannot [a-z]+[^\n]*)\s*$"
)
"""Pattern of errors of a shell that could not run a command, and of the standard command-line tools."""
_TOOLS = re2.compile(
    r"^(?:[\w./+-]{1,80}: )?(?i:fatal|error|panic)(?:\[\w{1,10}\])?: "
    r"|^[^\s:][^\n:]{0,150}:\d{1,6}:(?:\d{1,5}:)? (?i:fatal )?(?i:error)\b"
    r"|^[^\s(][^\n(]{0,150}\(\d{1,6},\d{1,5}\): error "
    r"|^npm (?:ERR!|error)|^make(?:\[\d+\])?: \*\*\* |^E: |^E   |^ERROR(?::| |$)|^\[ERROR\]|^FAILED\b|^FAIL\b"
    r"|BUILD FAIL"
    r"|^nothing (?:added )?to commit|^no changes added to commit|^The following paths are ignored|: No module named "
    r"|^Traceback \(most recent call last\)|^(?:[\w.]{1,60}\.)?\w{1,40}(?:Error|Exception)(?:: |$)"
    r"|^Exception in thread |\b[1-9]\d{0,5} (?:failed|errors?)\b|^Found [1-9]\d{0,5} errors?|^Would reformat: "
    r"|^(?i:segmentation fault|killed$|aborted\b)|^(?:java\.)[\w.]{1,60}(?:Error|Exception)\b"
)
_FINE = re2.compile(r"(?i)\b0 (?:failed|errors?|remaining)\b|\bno errors?\b")

_NO_HARM = re2.compile(
    r"(?i)warning|removing leading|nothing to be done|(?:entering|leaving) directory|up to date|\b(?:info|notice)\b"
    r"|^\w+: \d"
)


def error_in_command(line: str, output: object) -> str | None:
    """Returns the line in which a command's output reports an error; None: it reports none."""
    if not isinstance(output, str) or not output.strip():
        return None
    text = both_ends(output)
    if only_shows(line):
        return next((row for row in text.splitlines()[:MOST_LINES] if _is_own_error(line, row)), None)
    rows = [row for row in text.splitlines() if row.strip()]
    errors = [row for row in rows if (_TOOLS.search(row) and not _FINE.search(row)) or _SHELL.search(row)]
    own = (row for row in rows[:MOST_LINES] if _is_own_error(line, row))
    error = next((row for row in errors if not is_generic(row)), None) or next(iter(errors), None) or next(own, None)
    if error and error.startswith(TRACEBACK):
        return exception_in(text)
    return error[:SHORT_CHARS] if error else None


def only_shows(line: str) -> bool:
    """Returns whether a command line only shows files or state, so that errors in its output may be content."""
    return all(each.program in READERS for each in mains(line))


def _is_own_error(line: str, row: str) -> bool:
    names = {each.program for each in mains(line)} | {"bash", "sh", "zsh", "/bin/sh"}
    return row.split(":", 1)[0].rsplit("/", 1)[-1] in names and not _FINE.search(row) and not _NO_HARM.search(row)
