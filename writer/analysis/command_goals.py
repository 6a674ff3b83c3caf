"""Whether two command lines are after the same thing: one program, or one that does the same, on the same things."""

import re
from collections.abc import Iterable

from writer.analysis.argument_diff import alike
from writer.analysis.command_names import DATABASES, FAMILIES, FILTERS, INTERPRETERS, READERS, SUB_FAMILIES, TRIVIAL
from writer.analysis.commands import Command, commands

FEWEST_CHARS = 3
"""Difference in length from which on two programs are two."""
MOST_OPERANDS = 12
MOST_CHARS = 200
SAME_TEXT = 0.5
"""Least share of words that two texts have in common, of which one is the other, edited."""

_PAIRS = ({"master", "main"}, {"build", "dist"}, {"build", "out"})
_OF_ONE_FILE = {"run", "write"} | READERS | DATABASES
"""Programs that do another thing with every operand; another command may be meant for anything near."""
_LOOKS = re.compile(r"--(?:version|help)|-(?:version|V)")


def mains(line: str) -> list[Command]:
    """Returns the commands that a line is about: not those that prepare it, or show less of what it says."""
    every = commands(line)
    acting = [each for each in every if each.program not in TRIVIAL and not (each.piped and each.program in FILTERS)]
    return acting or every


def same_goal(failed: str, later: str) -> bool:
    """Returns whether the later line runs what the last command of the failed one was for."""
    before = mains(failed)[-1:]
    return any(_akin(old, new) for old in before for new in mains(later))


def only_reads(line: str) -> bool:
    """Returns whether a line changes nothing: it shows what is there."""
    every = [each for each in commands(line) if each.program not in {"cd", "echo"}]
    return bool(_LOOKS.search(line)) or all(
        each.program in READERS or (each.program == "git" and each.sub in {"status", "log", "diff", "show", "branch"})
        for each in every
    )


def _akin(old: Command, new: Command) -> bool:
    if old.program != new.program:
        family = any({old.program, new.program} <= names for names in FAMILIES)
        same_name = _misspelt(old.program, new.program) and not ({old.program, new.program} & INTERPRETERS)
        return (family or same_name) and _same_operands(old, new)
    return _same_sub(old, new) and _same_operands(old, new)


def _misspelt(one: str, other: str) -> bool:
    return abs(len(one) - len(other)) < FEWEST_CHARS and alike(one, other)


def _same_sub(old: Command, new: Command) -> bool:
    if old.sub == new.sub:
        return True
    if any({old.sub, new.sub} <= names for names in SUB_FAMILIES):
        return True
    return not old.sub or alike(old.sub, new.sub)


def _same_operands(old: Command, new: Command) -> bool:
    if old.program == "git" and old.sub == "commit":
        return True
    before, after = (_things(each)[:MOST_OPERANDS] for each in (old, new))
    if not before or not after:
        return old.program not in _OF_ONE_FILE or before == after
    return any(_same_name(one, other) for one in before for other in after)


def _things(command: Command) -> tuple[str, ...]:
    """Returns what a command is about: of a program for databases its statements, for the database is the same."""
    if command.program in DATABASES:
        return tuple(word for word in command.operands if " " in word) or command.operands[1:]
    return command.operands


def _same_name(old: str, new: str) -> bool:
    if old == new or {old, new} in _PAIRS:
        return True
    if " " in old.strip() and " " in new.strip():
        return _share(*(re.findall(r"\w+", text[:MOST_CHARS]) for text in (old, new))) >= SAME_TEXT
    one, other = (re.sub(r"\.\w{1,8}$", "", name.rstrip("/").rsplit("/", 1)[-1]) for name in (old, new))
    if not one or not other:
        return False
    return one == other or alike(one, other)


def _share(one: Iterable[str], other: Iterable[str]) -> float:
    old, new = set(one), set(other)
    return len(old & new) / max(1, min(len(old), len(new)))
