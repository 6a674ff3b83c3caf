"""Effects of programs on files: programs that only read them, and programs that change some.

A program that is not listed here may change any file.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import re2

READERS = frozenset("bat cat less more nl".split())
"""Programs that print a whole file."""
SEARCHERS = frozenset("ack ag egrep fd fdfind fgrep find grep ls rg tree".split())
_SHOWS_FILES = frozenset(
    """
    [ b2sum basename bat cat cksum cmp column comm cut diff dirname egrep eslint expand fgrep file flake8 fold grep
    head hexdump join jq less ls md5sum more mypy nl od paste pylint pyright readlink realpath rev rg sed seq
    sha1sum sha256sum shellcheck sort stat strings tac tail test tr tree uniq wc xxd yq zcat ack ag fd fdfind find
    git ruff go tsc awk cloc xargs
    """.split()
)
"""Programs that read files, and change some only with certain flags."""
_SHOWS_THE_MACHINE = frozenset(
    """
    : alias clear date df dig du echo env export false free groups hash host hostname id ifconfig lsof man nproc
    nslookup ping printenv printf ps pwd set sleep true type ulimit umask uname unset uptime w which who whoami
    """.split()
)
"""Programs that change no file, with an output that may differ each time."""
SILENT = frozenset(": [ alias export false hash set sleep test true ulimit umask unset".split())
"""Programs that print nothing."""
_CHANGES = frozenset("chmod chown cp install ln mkdir mv rm rmdir tee touch truncate unlink".split())
"""Programs that change only the files and folders among their operands."""
_GIT = frozenset(
    """
    blame cat-file describe diff diff-tree grep log ls-files ls-tree merge-base rev-list rev-parse shortlog show
    status whatchanged
    """.split()
)
_ACTING_FLAGS = re2.compile(
    r"--(?:fix|write|in-place|output|unsafe-fixes|install|install-types|vacuum|fprint)\b.*"
    r"|-(?:delete|exec|execdir|ok|okdir|fprint|fprint0|fprintf|fls)"
)
_ACTING: dict[str, Any] = {
    "sed": re2.compile(r"-[a-zA-Z]*i.*|.*(?:^|[;{}/\d])\s*w\s+\S.*|.*/[gIMp\d]*[ew](?:\s.*)?"),
    "yq": re2.compile(r"-i.*"),
    "sort": re2.compile(r"-o.*"),
    "tree": re2.compile(r"-o.*"),
    "less": re2.compile(r"-[oO].*"),
    "xxd": re2.compile(r"-r.*"),
    "date": re2.compile(r"-s.*|--set.*"),
    "awk": re2.compile(r"(?s).*(?:>|system|\|).*|-i.*"),
    "git": re2.compile(r"-O.*|--output.*|--ext-diff|--textconv"),
    "fd": re2.compile(r"-[xX].*|--exec.*"),
    "fdfind": re2.compile(r"-[xX].*|--exec.*"),
    "hostname": re2.compile(r"[^-].*"),
    "rg": re2.compile(r"--pre\b.*"),
}
_EXECUTED = re.compile(r"-(?:exec|execdir)")
_ACTS = re.compile(r"-(?:delete|ok|okdir|fprint|fprint0|fprintf|fls)")
_SHOWN = {"cat", "grep", "head", "ls", "stat", "wc", "file"}
"""Programs that ``find`` may execute without changing a file."""


def shows(program: str, rest: Sequence[str]) -> bool:
    """Returns whether a program only shows something and changes no file."""
    if program not in _SHOWS_FILES | _SHOWS_THE_MACHINE:
        return False
    if any(word.startswith("$") for word in rest) and program in {"find", "sort", *_ACTING, *_NEEDS}:
        return False  # the variable may hold a flag
    if program == "find" and any(map(_EXECUTED.fullmatch, rest)):
        starts = [at + 1 for at, word in enumerate(rest) if _EXECUTED.fullmatch(word)]
        return not any(map(_ACTS.fullmatch, rest)) and all(rest[at : at + 1] and rest[at] in _SHOWN for at in starts)
    acting = [_ACTING_FLAGS, *([_ACTING[program]] if program in _ACTING else [])]
    if any(flag.fullmatch(word) for flag in acting for word in rest):
        return False
    return program not in _NEEDS or _NEEDS[program](rest)


def is_steady(program: str) -> bool:
    """Returns whether the output of a program stays the same as long as no file changes."""
    return program in _SHOWS_FILES


def changed_by(program: str, rest: Sequence[str]) -> list[str] | None:
    """Returns the paths that a program changes, given its command's other words; None if it may change other paths."""
    paths = operands(rest)
    if program == "sed" and any(re.fullmatch(r"-[a-zA-Z]*i.*|--in-place.*", word) for word in rest):
        scripted = any(word in {"-e", "-f", "--expression", "--file"} for word in rest)
        return None if scripted or len(paths) < 2 else paths[1:]  # noqa: PLR2004 - a script, and files
    if program not in _CHANGES or any(word.startswith(("-t", "--target")) for word in rest):
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
    while words and (words[0].startswith("-") or words[0].isdigit() or words[0] == "{}"):
        words.pop(0)
    return not words or (words[0] != "xargs" and shows(words[0], words[1:]))


def _has_subcommand(*known: str) -> Callable[[Sequence[str]], bool]:
    return lambda rest: next((word for word in rest if not word.startswith("-")), "") in known


def _writes_no_second(rest: Sequence[str]) -> bool:
    """Returns whether a program that would write to its second operand has at most one."""
    return len(operands(rest)) <= 1


_NEEDS: dict[str, Callable[[Sequence[str]], bool]] = {
    "xargs": _passes_on,
    "git": _has_subcommand(*_GIT),
    "ruff": _has_subcommand("check"),
    "go": _has_subcommand("vet", "doc", "list", "env", "version"),
    "tsc": lambda rest: "--noEmit" in rest,
    "uniq": _writes_no_second,
    "xxd": _writes_no_second,
}
"""Conditions on the further words of a command under which its program changes no file, by program."""
