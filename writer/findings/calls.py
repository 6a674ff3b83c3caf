"""What the call of a tool is about: by the kind of its tool, and by the arguments that such tools commonly have."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

from retrieval.sections.quoting import visible
from retrieval.tables.kinds import ToolKind
from writer.analysis.commands import with_lines
from writer.analysis.statements import command_in
from writer.findings.aspects import MOST_LINES, Aspect, Lines, anything_else, changing, place_of_all, reading, searching
from writer.findings.paths import tidy
from writer.findings.queries import Asked, asked_in_words, exactly
from writer.findings.shell import aspects_of_line
from writer.findings.tool_kinds import kind_of

SHOWN_CHARS = 500
"""Of a query, that are kept of it."""
_PATHS = (
    "path",
    "file_path",
    "filepath",
    "file",
    "filename",
    "absolute_path",
    "relative_path",
    "relative_workspace_path",
    "target_file",
    "notebook_path",
    "uri",
)
_FOLDERS = (*_PATHS, "directory", "dir", "folder", "dir_path", "root", "cwd", "search_path", "target_directory")
_TARGETS = (*_FOLDERS, "destination", "new_path", "old_path", "source", "from", "to")
_PATTERNS = ("pattern", "regex", "regexp", "glob", "glob_pattern", "file_pattern")
_QUESTIONS = ("query", "question", "q", "search", "search_term", "text", "prompt", "keywords", "input", "url", "name")
_FIRST = ("start_line", "line_start", "first_line", "start", "offset", "start_line_one_indexed", "from_line")
_LAST = ("end_line", "line_end", "last_line", "end", "end_line_one_indexed_inclusive", "to_line")
_COUNT = ("limit", "num_lines", "line_count", "max_lines")
_RANGES = ("view_range", "range", "lines", "line_range")
_READS_AS = {"view", "read", "open", "cat"}
"""What ``command`` is of a tool that both shows and changes files, when it shows one."""


def aspects_of(tool: str, given: object, kinds: Mapping[str, str]) -> list[Aspect]:
    """Returns what a call is about, in the order in which it happens; at least one.

    Args:
        tool: its name.
        given: its input, or the text of a query that is to be compared with inputs.
        kinds: what the profile says of its tools.

    Raises:
        PathTooLong: a path in it is none.
    """
    given = with_lines(given)
    kind = kind_of(tool, kinds)
    line = command_in(given) if kind is None else _line(given) if kind == "shell" else None
    if line is not None:
        return aspects_of_line(line) or [anything_else(_short(line), repeatable=False)]
    if kind == "write" and isinstance(given, Mapping) and given.get("command") in _READS_AS:
        kind = "read"
    return [_aspect(tool, kind, given)]


def _aspect(tool: str, kind: ToolKind | None, given: object) -> Aspect:
    if kind == "read" and (path := _first_text(given, _PATHS)):
        return reading(tidy(path), _lines(given))
    if kind == "search":
        return _search(tool, given)
    if kind == "answer":
        question = _first_text(given, (*_QUESTIONS, *_PATTERNS)) or _as_text(given)
        return Aspect("answer", _short(question), _named("answer", asked_in_words(question), given))
    if kind in {"read", "other"}:
        said = _as_text(given)
        return anything_else(_short(f"{tool} {said}"), repeatable=True)
    if kind == "write":
        return _change(tool, given)
    return changing("", query=_short(f"{tool} {_as_text(given)}"), shows=True)


def _change(tool: str, given: object) -> Aspect:
    paths = [tidy(path) for path in _texts(given, _TARGETS)]
    if not paths:
        return changing("", query=_short(f"{tool} {_as_text(given)}"), shows=True)
    return replace(changing(paths[0], query=paths[0], shows=True), place=place_of_all(paths))


def _search(tool: str, given: object) -> Aspect:
    pattern, question = _first_text(given, _PATTERNS), _first_text(given, _QUESTIONS)
    scopes = [] if isinstance(given, str) else [tidy(path) for path in _texts(given, _FOLDERS)]
    if isinstance(given, str):
        pattern, question = "", given
    asked = exactly(pattern) if pattern else asked_in_words(question or "")
    if _is_of_patterns(tool):
        asked = exactly(pattern or question or "")
    shown = pattern or question or (scopes[0] if scopes else _as_text(given))
    where = " ".join(sorted(scopes))
    return searching(_short(shown), _named(f"{_own_name(tool)} in {where}", asked, given), scopes)


def _is_of_patterns(tool: str) -> bool:
    name = _own_name(tool)
    return any(part in name for part in ("grep", "rg", "glob", "find", "list", "ls", "tree", "fd", "regex"))


def _own_name(tool: str) -> str:
    return tool.casefold()


def _named(what: str, asked: Asked, given: object) -> Asked:
    """Returns what is asked for, with whatever else the call was given: another limit or mode finds something else."""
    told = {*_FOLDERS, *_PATTERNS, *_QUESTIONS, "explanation", "description", "instructions", "reason"}
    rest = {key: value for key, value in given.items() if key not in told} if isinstance(given, Mapping) else {}
    patterns = [key for key in _PATTERNS if isinstance(given, Mapping) and given.get(key)]
    rest |= {key: given[key] for key in patterns[1:]} if isinstance(given, Mapping) else {}
    rest = {key: value for key, value in rest.items() if value is not None}
    return Asked(f"{what} {asked.key} {json.dumps(rest, sort_keys=True, default=str) if rest else ''}", asked.terms)


def _line(given: object) -> str | None:
    """Returns the command line that a shell is given."""
    if isinstance(given, str):
        return given
    if (line := command_in(given)) is not None:
        return line
    return _first_text(given, ("command", "cmd", "script", "code", "line", "input")) or None


def _lines(given: object) -> Lines | None:
    """Returns which lines of a file a call asks for; None: all of them."""
    if not isinstance(given, Mapping):
        return None
    pair = next((given[name] for name in _RANGES if isinstance(given.get(name), list) and len(given[name]) == 2), None)  # noqa: PLR2004
    if pair is not None and all(isinstance(each, int) for each in pair):
        return max(1, pair[0]), pair[1] if pair[1] >= 1 else MOST_LINES
    first, last, count = _number(given, _FIRST), _number(given, _LAST), _number(given, _COUNT)
    if first is None and last is None and count is None:
        return None
    begin = max(1, first or 1)
    if last is None and count is not None:
        last = begin + count - 1
    return begin, MOST_LINES if last is None or last < begin else min(last, MOST_LINES)


def _number(given: Mapping[str, object], names: Iterable[str]) -> int | None:
    found = (given[name] for name in names if isinstance(given.get(name), int))
    number = next(found, None)
    return min(number, MOST_LINES) if isinstance(number, int) else None


def _first_text(given: object, names: Iterable[str]) -> str:
    return given if isinstance(given, str) else next(iter(_texts(given, names)), "")


def _texts(given: object, names: Iterable[str]) -> list[str]:
    """Returns the texts among the arguments of those names, and those in lists there, in the order of the names."""
    if not isinstance(given, Mapping):
        return [given] if isinstance(given, str) and given.strip() else []
    found: list[str] = []
    for name in names:
        value = given.get(name)
        texts = value if isinstance(value, list) else [value]
        found += [text for text in texts if isinstance(text, str) and text.strip()]
    return found


def _as_text(given: object) -> str:
    if given is None:
        return ""
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, sort_keys=True, default=str)


def _short(text: str) -> str:
    shown = visible(text[: 4 * SHOWN_CHARS])
    return shown if len(shown) <= SHOWN_CHARS else f"{shown[: SHOWN_CHARS - 1]}…"
