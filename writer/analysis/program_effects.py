"""Effects of programs on files: programs that only read them, and programs that change some.

A program that ``program_effects.toml`` does not list may change any file.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import re2

from retrieval.patterns import read

_READ: dict[str, Any] = read("writer.analysis", "program_effects.toml")
_ACTING = {program: re2.compile(words) for program, words in _READ.pop("acting").items()}
_SETS = {name: frozenset(programs.split()) for name, programs in _READ.items()}
READERS, SEARCHERS, SILENT = _SETS["readers"], _SETS["searchers"], _SETS["silent"]
_ACTING_FLAGS = re2.compile(
    r"--(?:fix|write|in-?place|add-noqa|output|unsafe-fixes|install|install-types|vacuum|fprint)\b.*"
    r"|-(?:delete|exec|execdir|ok|okdir|fprint|fprint0|fprintf|fls)"
)
_XARGS_VALUE = re.compile(r"-[0rtpxo]*[InLPsdaE]")
"""Flags of ``xargs`` whose value is the next word."""
_EXECUTED = re.compile(r"-(?:exec|execdir)")
_ACTS = re.compile(r"-(?:delete|ok|okdir|fprint|fprint0|fprintf|fls)")


def shows(program: str, rest: Sequence[str]) -> bool:
    """Returns whether a program only shows something and changes no file."""
    if program not in _SETS["shows_files"] | _SETS["shows_the_machine"]:
        return False
    if any(word.startswith("$") for word in rest) and program in {"find", "sort", *_ACTING, *_NEEDS}:
        return False  # the variable may hold a flag
    if program == "find" and any(map(_EXECUTED.fullmatch, rest)):
        starts = [at + 1 for at, word in enumerate(rest) if _EXECUTED.fullmatch(word)]
        return not any(map(_ACTS.fullmatch, rest)) and all(
            rest[at : at + 1] and rest[at] in _SETS["shown"] for at in starts
        )
    acting = [_ACTING_FLAGS, *([_ACTING[program]] if program in _ACTING else [])]
    if any(flag.fullmatch(word) for flag in acting for word in rest):
        return False
    return program not in _NEEDS or _NEEDS[program](rest)


def is_steady(program: str) -> bool:
    """Returns whether the output of a program stays the same as long as no file changes."""
    return program in _SETS["shows_files"]


def changed_by(program: str, rest: Sequence[str]) -> list[str] | None:
    """Returns the paths that a program changes, given its command's other words; None if it may change other paths."""
    paths = operands(rest)
    if program == "sed" and any(re.fullmatch(r"-[a-zA-Z]*i.*|--in-place.*", word) for word in rest):
        scripted = any(word in {"-e", "-f", "--expression", "--file"} for word in rest)
        return None if scripted or len(paths) < 2 else paths[1:]  # noqa: PLR2004 - a script, and files
    if program not in _SETS["changes"] or any(word.startswith(("-t", "--target")) for word in rest):
        return None
    if program in {"cp", "ln", "install"}:
        return paths[-1:]
    return paths[1:] if program in {"chmod", "chown"} else paths


def operands(rest: Sequence[str]) -> list[str]:
    """Returns the words of a command that are no flags, and all words after "--"."""
    if "--" in rest:
        at = list(rest).index("--")
        return [*operands(rest[:at]), *rest[at + 1 :]]
    return [word for word in rest if not word.startswith("-") or word == "-"]


def _passes_on(rest: Sequence[str]) -> bool:
    """Returns whether ``xargs`` runs a program that changes no file."""
    words = list(rest)
    while words and words[0].startswith("-"):
        words = words[2 if _XARGS_VALUE.fullmatch(words[0]) else 1 :]
    return not words or (words[0] != "xargs" and shows(words[0], words[1:]))


def _has_subcommand(*known: str) -> Callable[[Sequence[str]], bool]:
    return lambda rest: next((word for word in rest if not word.startswith("-")), "") in known


def _writes_no_second(rest: Sequence[str]) -> bool:
    """Returns whether a program that would write to its second operand has at most one."""
    return len(operands(rest)) <= 1


_NEEDS: dict[str, Callable[[Sequence[str]], bool]] = {
    "xargs": _passes_on,
    "git": _has_subcommand(*_SETS["git"]),
    "ruff": _has_subcommand("check"),
    "go": _has_subcommand("vet", "doc", "list", "env", "version"),
    "tsc": lambda rest: "--noEmit" in rest,
    "uniq": _writes_no_second,
    "xxd": _writes_no_second,
}
"""Conditions on the further words of a command under which its program changes no file, by program."""
