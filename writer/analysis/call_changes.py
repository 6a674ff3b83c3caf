"""Tells calls that change something from those that only look something up: by what they run, else by their tool."""

import re
from collections.abc import Mapping

from writer.analysis.calls import Call
from writer.analysis.command_names import FILTERS
from writer.analysis.commands import LINE_CHARS, bare, commands, pieces, simple_commands
from writer.analysis.program_effects import shows
from writer.analysis.state_changes import changes_state
from writer.analysis.statement_moves import statement_moves
from writer.analysis.statements import statement_of

READING = frozenset(("analyze", "describe", "explain", "lock", "pragma", "select", "show", "with"))
"""First words of statements that change no row and no table."""
_CHANGING = re.compile(
    r"(?is)select\s+(?:setval|nextval|set_config|pg_\w+)\s*\(|"
    r"(?:with|explain\s+\(?\s*analy[sz]e)\b.*\b(?:insert\s+into|update|delete\s+from|merge\s+into)\b"
)
"""Beginnings of statements that change something although their first word is one of READING."""
_OPENS = re.compile(r"(?i)(?:.*[._])?(?:browse|go_?to|navigate|open|visit)(?:_?to)?(?:_?(?:link|page|site|tab|url))?")
_ADDRESS = re.compile(r"https?://|about:|file:")


def changes(call: Call) -> bool:
    """Returns whether a call does more than look something up, by its command, its statement or its tool's name.

    A command line that writes an output to a file changes something, also where its programs only show something.
    """
    if call.line is not None:
        filters = (command for command in commands(call.line) if command.piped and command.program in FILTERS)
        files = {file for simple in simple_commands(pieces(call.line[:LINE_CHARS])) for file in simple.outputs}
        return (
            any(changing for _, changing in statement_moves("shell", call.line))
            or not all(shows(each.program, [*map(bare, each.words)]) for each in filters)
            or not files <= {"/dev/null"}
        )
    statement = statement_of(call.arguments)
    if statement is None:
        return changes_state(call.tool)
    return statement.split(None, 1)[0].casefold() not in READING or _CHANGING.match(statement) is not None


def opens_page(call: Call) -> bool:
    """Returns whether a call only opens the page of a web address in a browser, by its tool's name."""
    given = call.arguments.values() if isinstance(call.arguments, Mapping) else ()
    return bool(_OPENS.fullmatch(call.tool)) and any(_ADDRESS.match(value) for value in given if isinstance(value, str))
