"""What a command's output says of it: an error anywhere among its lines, for a shell reports the last of many.

A command that only shows what is there may show other people's errors; of it its own complaint counts and no other.
"""

import re2

from writer.analysis.command_goals import mains
from writer.analysis.command_names import READERS
from writer.analysis.error_output import LOOK_CHARS, SHORT_CHARS, beginning

MOST_LINES = 5
"""Lines in which a program's own complaint is looked for, as in ``sed: no such option``."""

_SHELL = re2.compile(
    r"(?i)^(?:[\w./-]{0,80}(?:bash|sh|zsh): )?(?:line \d+: |\d+: )?[^\n:]{1,120}: (?:command not found|not found"
    r"|permission denied"
    r"|no such file or directory|is a directory|not a directory|cannot [a-z]+[^\n]*)\s*$"
)
"""What a shell says of a command that it could not run, and what the small tools say."""
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
    """Returns the line in which the command's output reports an error, or None where it reports none."""
    if not isinstance(output, str) or not output.strip():
        return None
    text = looked_at(output)
    if only_shows(line):
        return next((said for said in text.splitlines()[:MOST_LINES] if _complains(line, said)), None)
    lines = [said for said in text.splitlines() if said.strip()]
    found = (said for said in lines if (_TOOLS.search(said) and not _FINE.search(said)) or _SHELL.search(said))
    own = (said for said in lines[:MOST_LINES] if _complains(line, said))
    said = next(found, None) or next(own, None)
    return said[:SHORT_CHARS] if said else None


def only_shows(line: str) -> bool:
    """Returns whether a line is about nothing but showing what is there, so that errors in it may be content."""
    return all(each.program in READERS for each in mains(line))


def _complains(line: str, said: str) -> bool:
    names = {each.program for each in mains(line)} | {"bash", "sh", "zsh", "/bin/sh"}
    return said.split(":", 1)[0].rsplit("/", 1)[-1] in names and not _FINE.search(said) and not _NO_HARM.search(said)


def looked_at(output: str) -> str:
    """Returns the beginning of an output, and its end where it is longer."""
    head = beginning(output, LOOK_CHARS)
    return head if len(output) <= LOOK_CHARS else f"{head}\n{beginning(output[-LOOK_CHARS:], LOOK_CHARS)}"
