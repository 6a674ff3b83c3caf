"""Compares the goals of two command lines: the same or an equivalent program, on the same operands."""

import re
from functools import lru_cache

from writer.analysis.argument_diff import alike
from writer.analysis.command_names import DATABASES, FAMILIES, FILTERS, INTERPRETERS, READERS, SUB_FAMILIES, TRIVIAL
from writer.analysis.commands import Command, commands

FEWEST_CHARS = 3
"""Least difference in length of two programs' names that are no misspellings of each other."""
MOST_OPERANDS = 12
MOST_COMPARED = 3
"""Maximum number of a later line's last commands, and of two commands' operands, that are compared by spelling."""
MOST_CHARS = 200
SAME_TEXT = 0.5
"""Least share of common words, 0 to 1, at which one text counts as an edit of the other."""

_PAIRS = ({"master", "main"}, {"build", "dist"}, {"build", "out"})
_OF_ONE_FILE = {"run", "write"} | READERS | DATABASES
"""Programs whose goal depends on their operands: a call without operands has the goal only of another such call."""
_VERSION = re.compile(r"(?<=[\w\]])(?:[=<>~!]=|[<>]|@(?=[\^~]?\d))")
"""The sign between a package and its version."""


@lru_cache(maxsize=64)  # each line is compared with several failures; it may have LINE_CHARS characters
def mains(line: str) -> tuple[Command, ...]:
    """Returns the main commands of a line, without commands that only prepare (cd) or filter the output (head).

    A line that has only such commands keeps them all.
    """
    every = commands(line)
    acting = [each for each in every if each.program not in TRIVIAL and not (each.piped and each.program in FILTERS)]
    return tuple(acting or every)


def same_goal(failed: str, later: str) -> bool:
    """Returns whether a command of a later line has the same goal as the last main command of a failed line."""
    return any(_akin(old, new) for old in mains(failed)[-1:] for new in mains(later)[-MOST_COMPARED:])


def _akin(old: Command, new: Command) -> bool:
    if old.program != new.program:
        family = any({old.program, new.program} <= names for names in FAMILIES)
        misspelled = abs(len(old.program) - len(new.program)) < FEWEST_CHARS and alike(old.program, new.program)
        same = family or (misspelled and not ({old.program, new.program} & INTERPRETERS))
    else:
        family = any({old.sub, new.sub} <= names for names in SUB_FAMILIES)
        same = old.sub == new.sub or family or not old.sub or alike(old.sub, new.sub)
    if not same or (old.program == "git" and old.sub == "commit"):  # operands of a commit are its message
        return same
    before, after = _subjects(old)[:MOST_OPERANDS], _subjects(new)[:MOST_OPERANDS]
    if not before or not after:
        return old.program not in _OF_ONE_FILE or before == after
    if not set(before).isdisjoint(after):
        return True
    return any(_same_name(one, other) for one in before[:MOST_COMPARED] for other in after[:MOST_COMPARED])


def _subjects(command: Command) -> tuple[str, ...]:
    """Returns the operands that make a command's goal; of a database client the statements, not the database's name."""
    if command.program in DATABASES:
        return tuple(word for word in command.operands if " " in word) or command.operands[1:]
    return command.operands


def _same_name(old: str, new: str) -> bool:
    old, new = (_VERSION.split(name, maxsplit=1)[0] or name for name in (old, new))
    if old == new or {old, new} in _PAIRS:
        return True
    if " " in old.strip() and " " in new.strip():
        before, after = (set(re.findall(r"\w+", text[:MOST_CHARS])) for text in (old, new))
        return len(before & after) / max(1, min(len(before), len(after))) >= SAME_TEXT
    one, other = (re.sub(r"\.\w{1,8}$", "", name.rstrip("/").rsplit("/", 1)[-1]) for name in (old, new))
    if not one or not other:
        return False
    return one == other or alike(one, other)
