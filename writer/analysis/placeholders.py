"""Concrete values as typed placeholders, so that what is learned from one run says nothing of its data."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from retrieval.text import shortened

TEXT_CHARS = 400
MOST_TOKENS = 120
PATH_CHARS = 40
FEWEST_WORDS = 3

_SQL_VERBS = {
    "alter", "analyze", "create", "delete", "drop", "explain", "grant", "insert", "merge", "select", "truncate",
    "update", "with",
}  # fmt: skip
_SQL_WORDS = _SQL_VERBS | {
    "add", "all", "and", "any", "array", "as", "asc", "begin", "between", "bigint", "boolean", "both", "by",
    "bytea", "cascade", "case", "cast", "char", "character", "check", "coalesce", "collate", "column", "commit",
    "concurrently", "conflict", "constraint", "count", "cross", "current_date", "current_timestamp", "database",
    "date", "decimal", "default", "deferrable", "desc", "distinct", "do", "double", "else", "end", "enum", "exists",
    "extension", "extract", "false", "fetch", "filter", "float", "for", "foreign", "from", "full", "function",
    "group", "having", "if", "ilike", "in", "index", "inner", "int", "integer", "interval", "into", "is", "join",
    "json", "jsonb", "key", "lateral", "left", "like", "limit", "lower", "max", "min", "natural", "not", "nothing",
    "now", "null", "nulls", "numeric", "offset", "on", "only", "or", "order", "outer", "over", "partition",
    "precision", "primary", "real", "references", "rename", "replace", "restrict", "returning", "revoke", "right",
    "rollback", "row", "rows", "schema", "sequence", "serial", "set", "smallint", "sum", "table", "text", "then",
    "time", "timestamp", "timestamptz", "to", "transaction", "trigger", "true", "type", "union", "unique", "upper",
    "using", "uuid", "values", "varchar", "view", "when", "where", "window", "zone",
}  # fmt: skip
_COMMANDS = frozenset({
    "apt", "awk", "bash", "cat", "cd", "chmod", "chown", "cp", "curl", "cut", "docker", "echo", "env", "export", "find",
    "gcc", "git", "go", "grep", "head", "kill", "kubectl", "ls", "make", "mkdir", "mv", "node", "npm", "pip", "psql",
    "pytest", "python", "python3", "rm", "sed", "sh", "sort", "ssh", "sudo", "systemctl", "tail", "tar", "test",
    "touch", "uv", "wc", "wget", "xargs", "yarn",
})  # fmt: skip
_TOKEN = re.compile(
    r"""'[^']*'|"[^"]*"|`[^`]*`|--?[A-Za-z][\w-]{0,30}|(?:\.{0,2}/)?[A-Za-z_~][\w.~$-]*(?:/[\w.~$*-]*)*"""
    r"|\d[\w.:-]*|\S"
)
_NAME = re.compile(rf"[\w$@-]{{1,{PATH_CHARS}}}")
_FLAG = re.compile(r"-[A-Za-z]{1,3}|--[A-Za-z][A-Za-z-]{0,20}")
"""A longer one may have its value in it, as in ``-psecret``."""

_VALUES = (
    (re.compile(r"\[REDACTED:[a-z-]+\]"), "<redacted>"),
    (re.compile(r"(?i)\bhttps?://\S+"), "<url>"),
    (re.compile(r"[\w.%+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,6}"), "<email>"),
    (re.compile(r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<id>"),
    (
        re.compile(
            r"\b\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[T ]\d{1,2}:\d\d(?::\d\d)?Z?)?\b|\b\d{1,2}[/.]\d{1,2}[/.]\d{2,4}\b"
        ),
        "<date>",
    ),
    (re.compile(r"(?<![\w<])(?:~|\.{1,2})?/[\w.~-]+(?:/[\w.~-]+)*"), "<path>"),
    (
        re.compile(r"\"[^\"\n]{0,200}\"|(?<!\w)'[^'\n]{0,200}'(?!\w)|`[^`\n]{0,200}`|[“„«][^”“»\n]{0,200}[”“»]"),
        "<string>",
    ),
    (re.compile(r"(?<![\w<])#?(?=[\w-]{0,40}\d)(?=[\w-]{0,40}[A-Za-z])[\w-]{2,60}\b"), "<id>"),
    (re.compile(r"(?<![\w<])[#$€£]?[+-]?\d(?:[\d.,:]*\d)?%?(?!\w)"), "<number>"),
    (re.compile(r"\b[A-Za-z]\w*_\w+\b|\b[a-z]+[A-Z]\w*\b|\b\w+\.\w+\.\w+\b"), "<identifier>"),
)
_NAMES = re.compile(r"(?<=[a-z,] )[A-Z][a-zà-ÿ]+(?: [A-Z][a-zà-ÿ]+){0,3}")
_TYPES = (
    ("<email>", re.compile(r"[\w.%+-]+@[\w.-]+\.\w+")),
    ("<url>", re.compile(r"(?i)https?://\S+")),
    ("<date>", re.compile(r"\d{4}[-/.]\d\d?[-/.]\d\d?(?:[T ][\d:.Z+-]+)?|\d\d?[/.]\d\d?[/.]\d{2,4}")),
    ("<number as text>", re.compile(r"[+-]?\d[\d.,]*")),
    ("<path>", re.compile(r"(?:~|\.{1,2})?/[\w./~-]*")),
    ("<id>", re.compile(r"#?(?=\S*\d)[\w-]+")),
    ("<word>", re.compile(r"[\w-]+")),
)


_PLACEHOLDER = re.compile(r"<[a-z]+(?: [a-z0-9]+){0,3}>")


def without_placeholders(text: str) -> str:
    """Returns the words around the placeholders, which mean more to an embedder alone; the text if there are none."""
    return " ".join(_PLACEHOLDER.sub(" ", text).split()) or text


def clean(text: str, longest: int) -> str:
    """Returns the text in one line that Postgres can store, cut to that many characters."""
    known = text[: 4 * longest].encode(errors="replace").decode()
    line = " ".join("".join(char if char.isprintable() else " " for char in known).split())
    return shortened(line, longest)


def abstract(text: str, known: Iterable[str] = ()) -> str:
    """Returns the text with its concrete values as placeholders.

    Args:
        text: of which the first TEXT_CHARS count.
        known: words that are values, because some call had them in its arguments.
    """
    said = clean(text, TEXT_CHARS)
    for pattern, placeholder in _VALUES:
        said = pattern.sub(placeholder, said)
    words = {word.casefold() for word in known}
    said = re.sub(r"(?<![<\w])\w+(?![\w>])", lambda found: _unless(found.group(), words), said)
    named = _NAMES.findall(said)
    return said if len(named) > len(said.split()) / 5 else _NAMES.sub("<name>", said)


def _unless(word: str, known: set[str]) -> str:
    return "<identifier>" if word.casefold() in known else word


def values_of(given: Any) -> set[str]:
    """Returns the words in a call's arguments that are names or values: of short texts and of statements."""
    found: set[str] = set()
    for text in _texts(given):
        statement = is_statement(text)
        words = tokens(text)[:MOST_TOKENS]
        if statement or len(words) <= FEWEST_WORDS:
            shortest = FEWEST_WORDS + (not statement and len(words) > 1)  # "the" beside a name is no value
            found.update(word for word in words if len(word) >= shortest and word.isidentifier())
    return {word for word in found if word.casefold() not in _SQL_WORDS}


def _texts(given: Any) -> list[str]:
    values = list(given.values())[:MOST_TOKENS] if isinstance(given, dict) else [given]
    return [value[:TEXT_CHARS] for value in values if isinstance(value, str)]


def path_name(key: Any) -> str:
    """Returns a key as a part of a path; one that is no name but a text is not repeated."""
    return str(key) if _NAME.fullmatch(str(key)[: PATH_CHARS + 1]) else "<key>"


def tokens(text: str) -> list[str]:
    """Returns the words, strings, numbers and signs of a text's beginning."""
    return _TOKEN.findall(text[: 10 * TEXT_CHARS])


def is_statement(text: str) -> bool:
    """Returns whether the text is SQL or a command line, by its first word."""
    words = text[:TEXT_CHARS].split(None, FEWEST_WORDS)
    return len(words) >= FEWEST_WORDS - 1 and _leads(words[0])


def _leads(word: str) -> bool:
    return word.casefold() in _SQL_VERBS or word in _COMMANDS


def abstract_tokens(words: Sequence[str], statement: str) -> list[str]:
    """Returns the words of a statement with all but the language's own as placeholders."""
    first = statement.split(None, 1)
    language = _SQL_WORDS if first and first[0].casefold() in _SQL_VERBS else _COMMANDS
    return [_abstract_token(word, language) for word in words]


def _abstract_token(word: str, language: Iterable[str]) -> str:
    if word.casefold() in language or (len(word) == 1 and not word.isalnum()):
        return word
    if language is _COMMANDS and _FLAG.fullmatch(word):
        return word
    if word[0] == "'" or (word[0] == '"' and language is _COMMANDS):
        return "<string>"
    if word[0].isdigit():
        return "<number>"
    if language is _COMMANDS:
        return "<path>" if "/" in word else "<word>"
    return "<identifier>"


def kind_of(value: Any) -> str:
    """Returns the placeholder of the value's type."""
    if isinstance(value, str):
        return _kind_of_text(value)
    if isinstance(value, bool):
        return "<boolean>"
    if isinstance(value, int | float):
        return "<number>"
    if value is None:
        return "<null>"
    if isinstance(value, list):
        return f"<list of {len(value)}>"
    return "<object>"


def _kind_of_text(text: str) -> str:
    if not text.strip():
        return "<empty text>"
    if len(text) > TEXT_CHARS:
        return "<text>"
    return next((name for name, pattern in _TYPES if pattern.fullmatch(text)), "<text>")


def form(given: Any, shown: Callable[[Any], str] | None = None) -> str:
    """Returns a call's arguments by their names, with types for values and statements for themselves.

    Args:
        given: the arguments.
        shown: what stands for a value instead of ``form_of``.
    """
    show = shown or form_of
    if not isinstance(given, dict):
        return "no arguments" if given is None else show(given)
    if not given:
        return "no arguments"
    named = [f"{path_name(key)}={show(value)}" for key, value in list(given.items())[:8]]
    return ", ".join(named + ["…"] * (len(given) > len(named)))


def form_of(value: Any) -> str:
    """Returns the type of a value, or the form of a statement."""
    if isinstance(value, str) and is_statement(value):
        words = abstract_tokens(tokens(value)[: MOST_TOKENS // 3], value)
        return f"`{clean(' '.join(words), TEXT_CHARS)}`"
    return kind_of(value)
