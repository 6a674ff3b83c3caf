"""Aspects of a tool call, derived from the kind of its tool and from argument names that many such tools have.

The kind of a tool, such as a search, is in the profile's settings, or follows from the names in ``tool_kinds.toml``.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, cast

from retrieval.patterns import read
from retrieval.sections.quoting import visible
from retrieval.tables.kinds import ToolKind
from writer.analysis.commands import with_lines
from writer.analysis.statements import statement_of
from writer.findings.aspects import MOST_LINES, Aspect, Lines, anything_else, changing, place_of_all, reading, searching
from writer.findings.paths import tidy
from writer.findings.queries import QueryKey, exact_key, question_key
from writer.findings.shell import aspects_of_line

_KINDS = {
    name: cast("ToolKind", kind)
    for kind, names in read("writer.findings", "tool_kinds.toml").items()
    for name in names.split()
}
_READS_ONLY = re.compile(r"(?:get|find|list|search|check|read|describe|show|fetch|lookup|query|view|count)_")
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BETWEEN = re.compile(r"[^a-z0-9]+")
_NAMESPACE = re.compile(r".*(?:__|[:./])", re.DOTALL)

SHOWN_CHARS = 500
"""Maximum number of characters of a query that an aspect keeps."""
ONLY = "the only text"
"""Name of the text of a call that has no named arguments."""
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
_PARTS = (
    *("tail", "head", "page", "pages", "cell", "cell_id", "symbol", "section", "chunk"),
    *("length", "max_chars", "max_bytes"),
)
"""Arguments with which a tool shows a part of a file that is not named by its first and last line."""
_PAIR = re.compile(r"\s*(\d{1,18})(?:\s*[-:,]\s*(-?\d{1,18}))?\s*")
_SCRIPTS = ("command", "cmd", "script", "code", "line", "input")
_READS_AS = {"view", "read", "open", "cat"}
"""Values of the argument ``command`` with which an editor tool shows a file, and does not change it."""
LISTS_FOLDERS = re.compile(r"(?:^|[^a-z])(?:ls|list|tree)(?:[^a-z]|$)")
"""Pattern of the names of tools that list folders."""
_PATTERN_TOOLS = ("grep", "rg", "glob", "find", "list", "ls", "tree", "fd", "regex")
"""Parts in the names of tools whose queries are patterns and not questions."""


def aspects_of(tool: str, arguments: object, kinds: Mapping[str, str]) -> list[Aspect]:
    """Returns the aspects of a call in the order of their effects, at least one.

    The arguments may be only the text of the query, path or command. ``kinds`` are kinds of tools in the profile's
    settings.

    Raises:
        PathTooLong: a path in the input is too long.
    """
    arguments = with_lines(arguments)
    kind = _kind_of(tool, kinds)
    line = statement_of(arguments, "shell") if kind in {None, "shell"} else None
    if kind == "shell":
        line = arguments if isinstance(arguments, str) else line or _first_text(_named(arguments), _SCRIPTS) or None
    if line is not None:
        return aspects_of_line(line) or [anything_else(_short(line), repeatable=False)]
    if kind == "write" and isinstance(arguments, Mapping) and arguments.get("command") in _READS_AS:
        kind = "read"
    return [_aspect(tool, kind, arguments)]


def _kind_of(tool: str, settings: Mapping[str, str]) -> ToolKind | None:
    """Returns the kind of a tool, or None for a tool that may do anything."""
    if tool in settings:
        return cast("ToolKind", settings[tool])
    whole, own = _plain_name(tool), _plain_name(_NAMESPACE.sub("", tool))
    if (kind := _KINDS.get(whole) or _KINDS.get(own)) is not None:
        return kind
    return "other" if _READS_ONLY.match(own) else None


@lru_cache(maxsize=4096)  # the same few names come with every step
def _plain_name(name: str) -> str:
    """Returns a name in lower case with underscores: `readFile` is `read_file`."""
    return _BETWEEN.sub("_", _CAPITAL.sub("_", name).lower()).strip("_")


def _named(given: object) -> Mapping[str, Any]:
    """Returns the arguments by their plain names; a text alone has the name ONLY."""
    if isinstance(given, Mapping):
        return {_plain_name(name): value for name, value in given.items()}
    return {ONLY: given} if isinstance(given, str) else {}


def _aspect(tool: str, kind: ToolKind | None, given: object) -> Aspect:
    arguments = _named(given)
    if kind == "read" and (path := _first_text(arguments, _PATHS)) and not _reads_otherwise(arguments):
        return reading(tidy(path), _lines(arguments))
    if kind == "search":
        return _search(tool, arguments, given)
    if kind == "answer":
        question = _first_text(arguments, (*_QUESTIONS, *_PATTERNS)) or _as_text(given)
        return Aspect("answer", _short(question), _with_options("answer", question_key(question), arguments))
    query = _short(f"{tool} {_as_text(given)}")
    if kind in {"read", "other"}:
        return anything_else(query, repeatable=True)
    paths = [tidy(path) for path in _texts(arguments, _TARGETS)] if kind == "write" else []
    if not paths:
        return changing("", query=query, shows=True)
    return replace(changing(paths[0], query=paths[0], shows=True), place=place_of_all(paths))


def _search(tool: str, arguments: Mapping[str, Any], given: object) -> Aspect:
    name = tool.casefold()
    if ONLY in arguments:
        arguments = {"path" if LISTS_FOLDERS.search(name) else "query": arguments[ONLY]}
    pattern, question = _first_text(arguments, _PATTERNS), _first_text(arguments, _QUESTIONS)
    folders = _texts(arguments, _FOLDERS)
    scopes = [tidy(path) for path in folders]
    query_key = exact_key(pattern) if pattern else question_key(question)
    if any(part in name for part in _PATTERN_TOOLS):
        query_key = exact_key(pattern or question)
    shown = pattern or question or (folders[0] if folders else _as_text(given))
    where = " ".join(sorted(scopes))
    return searching(_short(shown), _with_options(f"{name} in {where}", query_key, arguments), scopes)


def _with_options(what: str, query_key: QueryKey, arguments: Mapping[str, Any]) -> QueryKey:
    """Returns the query with the other arguments of the call, because another limit or mode has another output."""
    ignored = {ONLY, *_FOLDERS, *_PATTERNS, *_QUESTIONS, "explanation", "description", "instructions", "reason"}
    ignored -= {*[name for name in _PATTERNS if arguments.get(name)][1:]}
    rest = {name: value for name, value in arguments.items() if name not in ignored and value is not None}
    options = json.dumps(rest, sort_keys=True, default=str) if rest else ""
    return QueryKey(f"{what} {query_key.key} {options}", query_key.terms)


def _reads_otherwise(arguments: Mapping[str, Any]) -> bool:
    """Returns whether a call reads several files, or a part of one that cannot be told in lines, such as its end."""
    given = {name: value for name, value in arguments.items() if value not in (None, "", [])}
    numbers = (given[name] for name in (*_FIRST, *_LAST, *_COUNT) if name in given)
    ranges = (given[name] for name in _RANGES if name in given)
    return (
        any(given.get(name) for name in _PARTS)
        or any(isinstance(given.get(name), list) and len(given[name]) > 1 for name in _PATHS)
        or any(_whole(value) is None for value in numbers)
        or any(_pair(value) is None for value in ranges)
    )


def _lines(arguments: Mapping[str, Any]) -> Lines | None:
    """Returns the lines of a file that a call reads; None for the whole file."""
    if (pair := next(filter(None, (_pair(arguments.get(name)) for name in _RANGES)), None)) is not None:
        return pair
    first, last, count = (
        next((number for name in names if (number := _whole(arguments.get(name))) is not None), None)
        for names in (_FIRST, _LAST, _COUNT)
    )
    if first is None and last is None and count is None:
        return None
    begin = max(1, first or 1)
    if last is None and count is not None:
        last = min(begin + count - 1, MOST_LINES)
    return begin, MOST_LINES if last is None or last < begin else last


def _pair(value: object) -> Lines | None:
    """Returns the first and the last line of a range, which is a list or a text such as "10-20"; None for others."""
    if isinstance(value, str) and (match := _PAIR.fullmatch(value)):
        value = [match[1], match[2] or match[1]]
    if not isinstance(value, list) or len(value) != 2 or (first := _whole(value[0])) is None:  # noqa: PLR2004
        return None
    last = -1 if value[1] is None else _whole(value[1])
    if last is None or 1 <= last < first:
        return None
    return max(1, first), last if last >= 1 else MOST_LINES


def _whole(value: object) -> int | None:
    """Returns a whole number, which may be written as a text or with a point, at most MOST_LINES; None for others."""
    if isinstance(value, str) and re.fullmatch(r"\s*-?\d{1,18}\s*", value):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return min(value, MOST_LINES) if isinstance(value, int) and not isinstance(value, bool) else None


def _first_text(arguments: Mapping[str, Any], names: Iterable[str]) -> str:
    return next(iter(_texts(arguments, names)), "")


def _texts(arguments: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """Returns the texts under these names or alone, and in lists there, in the order of the names."""
    texts: list[str] = []
    for name in (ONLY, *names):
        value = arguments.get(name)
        values = value if isinstance(value, list) else [value]
        texts += [text for text in values if isinstance(text, str) and text.strip()]
    return texts


def _as_text(given: object) -> str:
    if given is None or isinstance(given, str):
        return given or ""
    return json.dumps(given, ensure_ascii=False, sort_keys=True, default=str)


def _short(text: str) -> str:
    shown = visible(text[: 4 * SHOWN_CHARS])
    return shown if len(shown) <= SHOWN_CHARS else f"{shown[: SHOWN_CHARS - 1]}…"
