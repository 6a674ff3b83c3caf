"""SQL statements and command lines as tokens, each with what may be shown of it: the language's own words, or a type.

Regular expressions, each linear in the text, which never raise: calls fail by what is broken in their statements,
so an open quote must not hide the rest. A quote that is never closed is a sign like any other; an open comment or
dollar quote reaches to the end, as in Postgres.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Literal, NamedTuple

from writer.analysis.command_names import DATABASES
from writer.analysis.command_words import shown
from writer.analysis.commands import MOST_KEYS, bare, is_command_key, pieces, starts_command

Language = Literal["sql", "shell"]

STATEMENT_CHARS = 40_000
"""Characters of a statement that are looked at, enough for most strings to end within."""
MOST_TOKENS = 120
"""Tokens of a statement, and words of a text, that are looked at."""
TEXT_CHARS = 4_000
"""Characters of a text of any kind that are looked at."""
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
_PLAIN = re.compile(
    r"""'[^']*'|"[^"]*"|`[^`]*`|--?[A-Za-z][\w-]{0,30}|(?:\.{0,2}/)?[A-Za-z_~][\w.~$-]*(?:/[\w.~$*-]*)*"""
    r"|\d[\w.:-]*|\S"
)
_ASSIGNS = re.compile(r"[A-Z_][A-Z0-9_]{1,40}=\S*")
"""As in ``PYTHONPATH=src python …``."""
_SHOWN = {"string": "<string>", "name": "<identifier>", "number": "<number>"}


class Token(NamedTuple):
    """A word, string, number or sign of a statement, and what stands for it where none of its data may be told."""

    text: str
    shown: str


def language_of(text: str, key: object = None) -> Language | None:
    """Returns the language of a statement, by its first word; None of a text that is none.

    Args:
        text: the statement, maybe.
        key: the name of the argument that it is; of one for command lines, whatever is not SQL is a command line.
    """
    known = text[:TEXT_CHARS]
    lead = _LEAD.match(known)
    start = lead.end() if lead else 0
    first, *more = known[start : start + FIRST_CHARS].split(None, 1) or [""]
    if more and first.casefold() in _SQL_VERBS:
        return "sql"
    if first and is_command_key(key, text):
        return "shell"
    return "shell" if more and (starts_command(first) or _ASSIGNS.fullmatch(first)) else None


def command_in(given: object) -> str | None:
    """Returns the command line among a call's arguments, or None without one."""
    values = islice(given.items(), MOST_KEYS) if isinstance(given, Mapping) else (("", given),)
    lines = (text for key, text in values if isinstance(text, str) and language_of(text, key) == "shell")
    return next(lines, None)


def is_statement(text: str, key: object = None) -> bool:
    """Returns whether the text is SQL or a command line, by its first word."""
    return language_of(text, key) is not None


def tokens(text: str, language: Language, *, concrete: bool = False) -> list[Token]:
    """Returns the first tokens of a statement, without its comments.

    Args:
        text: the statement.
        language: in which it is.
        concrete: whether what is safe of a command line is shown as it was.
    """
    known = text[:STATEMENT_CHARS]
    return list(islice(_sql(known) if language == "sql" else _shell(known, concrete=concrete), MOST_TOKENS))


def words(text: str) -> list[str]:
    """Returns the first words, strings, numbers and signs of a text, in whatever language it is."""
    return _PLAIN.findall(text[:TEXT_CHARS])[:MOST_TOKENS]


def _sql(text: str) -> Iterator[Token]:
    for found in _SQL.finditer(text):
        kind, said = found.lastgroup or "", found[0]
        if kind == "sign" or said.casefold() in SQL_WORDS:
            yield Token(said, said)
        elif kind != "left_out":
            yield Token(said, _SHOWN[kind])


def _shell(text: str, *, concrete: bool) -> Iterator[Token]:
    """Yields the pieces of the commands, and SQL among their words as what it is."""
    line = list(islice(pieces(text), MOST_TOKENS))
    asks = any(bare(piece.text).rsplit("/", 1)[-1] in DATABASES for piece in line)
    for piece, said in zip(line, shown(line, concrete=concrete), strict=True):
        inner = bare(piece.text)
        if asks and said == "<string>" and inner != piece.text and language_of(inner) == "sql":
            yield Token(piece.text, f'"{" ".join(token.shown for token in islice(_sql(inner), MOST_TOKENS))}"')
        else:
            yield Token(piece.text, said)
