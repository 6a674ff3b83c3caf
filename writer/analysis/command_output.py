"""Finds errors in any line of a command's output, because a shell may run many commands in one call.

The output of a command that only shows files may contain errors as content; there only the program's own error counts.
"""

from retrieval.patterns import patterns
from writer.analysis.causes_below import is_generic
from writer.analysis.command_goals import mains
from writer.analysis.command_names import READERS
from writer.analysis.error_output import SHORT_CHARS, TRACEBACK, both_ends, exception_in

MOST_LINES = 5
"""Number of first lines of an output that are searched for a program's own error, as in ``sed: no such option``."""

_FORMS = patterns("writer.analysis", "command_output")


def error_in_command(line: str, output: object) -> str | None:
    """Returns the line in which a command's output reports an error; None: it reports none."""
    if not isinstance(output, str) or not output.strip():
        return None
    text = both_ends(output)
    if only_shows(line):
        return next((row for row in text.splitlines()[:MOST_LINES] if _is_own_error(line, row)), None)
    rows = [row for row in text.splitlines() if row.strip()]
    errors = [
        row
        for row in rows
        if (_FORMS["tools"].search(row) and not _FORMS["fine"].search(row)) or _FORMS["shell"].search(row)
    ]
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
    return (
        row.split(":", 1)[0].rsplit("/", 1)[-1] in names
        and not _FORMS["fine"].search(row)
        and not _FORMS["no_harm"].search(row)
    )
