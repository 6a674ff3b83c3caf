"""SQL statements and command lines as tokens, each with what may be shown of it: the language's own words, or a type.

Three regular expressions, each linear in the text, which never raise: calls fail by what is broken in their statements,
so an open quote must not hide the rest. A quote that is never closed is a sign like any other; an open comment or
dollar quote reaches to the end, as in Postgres.
"""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

Language = Literal["sql", "shell"]

STATEMENT_CHARS = 4_000
"""Characters of a text that are looked at."""
FIRST_CHARS = 400
"""Characters in which a second word must begin."""

_SQL_VERBS = frozenset({
    "alter", "analyze", "create", "delete", "drop", "explain", "grant", "insert", "merge", "select", "truncate",
    "update", "with",
})  # fmt: skip
SQL_WORDS = _SQL_VERBS | {
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
"""Words that are SQL wherever they stand unquoted; what may as well be a column (name, value, data) is not here."""
_COMMANDS = frozenset({
    "apt", "awk", "bash", "cat", "cd", "chmod", "chown", "cp", "curl", "cut", "docker", "echo", "env", "export", "find",
    "gcc", "git", "go", "grep", "head", "kill", "kubectl", "ls", "make", "mkdir", "mv", "node", "npm", "pip", "psql",
    "pytest", "python", "python3", "rm", "sed", "sh", "sort", "ssh", "sudo", "systemctl", "tail", "tar", "test",
    "touch", "uv", "wc", "wget", "xargs", "yarn",
})  # fmt: skip

_LEAD = re.compile(r"(?:\s|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)*")
"""Blanks and SQL comments before the first word."""
_SQL = re.compile(
    r"""(?xs)
    (?P<left_out> --[^\n]* | /\*(?:[^*]|\*(?!/))*(?:\*/|\Z) )
    | (?P<string> [eE]'(?:\\.|''|[^'\\])*' | (?:[bBnNxX]|[uU]&)?'(?:''|[^'])*'
                | \$(?P<tag>\w*)\$.*?(?:\$(?P=tag)\$|\Z) )
    | (?P<name> (?: "(?:""|[^"])*" | `[^`]*` | [^\W\d][\w$]* )
                (?: \. (?: "(?:""|[^"])*" | `[^`]*` | [^\W\d][\w$]* | (?=\*) ) )* )
    | (?P<number> \d[\w.]* | \.\d+ )
    | (?P<sign> :: | := | ->>? | => | <> | [<>!]= | \|\| | && | @> | <@ | \S )
    """
)
_SHELL = re.compile(
    r"""(?xs)
    (?P<left_out> (?<!\S)\#[^\n]* | \\\n )
    | (?P<sign> \d?>{1,2}(?:&\d)? | [<|&]{1,3} | [;()={}] )
    | (?P<word> (?: \$'(?:\\.|[^'\\])*' | '[^']*' | "(?:\\.|[^"\\])*" | \\. | [^\s'"\\|&;<>()=] )+ )
    | (?P<open_quote> \S )
    """
)
_HERE_DOCUMENT = re.compile(
    r"""(?xs) (?P<line> (?<!<)<<-?[ \t]*(?P<quote>['"]?)(?P<end>\w{1,40})(?P=quote)[^\n]{0,400}\n )
    (?P<text> .*? ) (?: ^[ \t]*(?P=end)[ \t]*$ | \Z )""",
    re.MULTILINE,
)
_PLAIN = re.compile(
    r"""'[^']*'|"[^"]*"|`[^`]*`|--?[A-Za-z][\w-]{0,30}|(?:\.{0,2}/)?[A-Za-z_~][\w.~$-]*(?:/[\w.~$*-]*)*"""
    r"|\d[\w.:-]*|\S"
)
_FLAG = re.compile(r"-[A-Za-z]{1,3}|--[A-Za-z][A-Za-z-]{0,20}")
"""A longer one may have its value in it, as in ``-psecret``."""
_LONGEST_SIGN = 3
_SHOWN = {"string": "<string>", "name": "<identifier>", "number": "<number>"}


class Token(NamedTuple):
    """A word, string, number or sign of a statement, and what stands for it where none of its data may be told."""

    text: str
    shown: str


def language_of(text: str) -> Language | None:
    """Returns the language of a statement, by its first word; None of a text that is none."""
    known = text[:STATEMENT_CHARS]
    lead = _LEAD.match(known)
    start = lead.end() if lead else 0
    first, *more = known[start : start + FIRST_CHARS].split(None, 1) or [""]
    if not more:
        return None
    if first.casefold() in _SQL_VERBS:
        return "sql"
    return "shell" if first in _COMMANDS else None


def tokens(text: str, language: Language) -> list[Token]:
    """Returns the tokens of a statement's beginning, without its comments."""
    known = text[:STATEMENT_CHARS]
    return list(_sql(known) if language == "sql" else _shell(known))


def words(text: str) -> list[str]:
    """Returns the words, strings, numbers and signs of a text's beginning, in whatever language it is."""
    return _PLAIN.findall(text[:STATEMENT_CHARS])


def _sql(text: str) -> Iterator[Token]:
    for found in _SQL.finditer(text):
        kind, said = found.lastgroup or "", found[0]
        if kind == "sign" or said.casefold() in SQL_WORDS:
            yield Token(said, said)
        elif kind != "left_out":
            yield Token(said, _SHOWN[kind])


def _shell(text: str) -> Iterator[Token]:
    """Yields the tokens of the commands, and each here-document as one string."""
    start = 0
    for found in _HERE_DOCUMENT.finditer(text):
        yield from _commands(text[start : found.end("line")])
        yield Token(found["text"], "<string>")
        start = found.end()
    yield from _commands(text[start:])


def _commands(text: str) -> Iterator[Token]:
    for found in _SHELL.finditer(text):
        if found.lastgroup == "word":
            yield Token(found[0], _shown_word(found[0]))
        elif found.lastgroup != "left_out":
            yield Token(found[0], found[0])


def _shown_word(word: str) -> str:
    if "'" in word or '"' in word:
        return "<string>"
    if word in _COMMANDS or _FLAG.fullmatch(word) or (len(word) <= _LONGEST_SIGN and not re.search(r"\w", word)):
        return word
    if word[0].isdigit():
        return "<number>"
    if "://" in word:
        return "<url>"
    return "<path>" if "/" in word else "<word>"
