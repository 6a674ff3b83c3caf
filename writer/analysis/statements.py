"""A tokenizer for SQL statements and command lines; each token has a form that reveals no data.

The tokenizer never raises, because failed calls often have broken statements. A quote that is never closed is an
ordinary sign, so that it does not hide the text after it; an open comment or dollar quote reaches to the end, as in
Postgres. Each regular expression takes time linear in the text.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Literal, NamedTuple

from retrieval.patterns import patterns
from writer.analysis.command_names import DATABASES
from writer.analysis.command_words import shown
from writer.analysis.commands import MOST_KEYS, bare, is_command_key, pieces, starts_command

Language = Literal["sql", "shell"]

STATEMENT_CHARS = 40_000
"""Maximum characters of a statement that are read, enough to contain the end of most strings."""
MOST_TOKENS = 120
"""Maximum number of tokens of a statement, and of words of a text, that are read."""
TEXT_CHARS = 4_000
"""Maximum characters of a text of any other kind that are read."""
FIRST_CHARS = 400
"""Number of characters within which the second word of a statement must begin."""

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
"""Words that are SQL wherever they occur unquoted; words that are often columns (name, value, data) are left out."""
_FORMS = patterns("writer.analysis", "statements")
_SHOWN = {"string": "<string>", "name": "<identifier>", "number": "<number>"}


class Token(NamedTuple):
    """A word, string, number or sign of a statement, and the form that shows it: the word itself, or a placeholder."""

    text: str
    shown: str


def language_of(text: str, key: object = None) -> Language | None:
    """Returns the language of a text by its first word, or None if the text is no statement.

    Args:
        text: the text.
        key: name of the argument that holds the text; if it is a name for command lines, any text but SQL is one.
    """
    known = text[:TEXT_CHARS]
    is_line = is_command_key(key, text)
    if not is_line and len(known.split(None, 1)) < 2:  # noqa: PLR2004 - one word is no statement
        return None
    lead = _FORMS["lead"].match(known)
    start = lead.end() if lead else 0
    first, *more = known[start : start + FIRST_CHARS].split(None, 1) or [""]
    if more and first.casefold() in _SQL_VERBS:
        return "sql"
    if first and is_line:
        return "shell"
    if more and more[0].startswith(("= ", "== ")):  # code such as ``df = read()``, though df is a program
        return None
    # a line break after an assignment: a file of settings
    assigns = _FORMS["assigns"].fullmatch(first) and not known[start + len(first) :].startswith("\n")
    return "shell" if more and (starts_command(first) or assigns) else None


def statement_of(arguments: object, *languages: Language) -> str | None:
    """Returns the statement in one of these languages, or in any, among a call's arguments; None: there is none."""
    values = islice(arguments.items(), MOST_KEYS) if isinstance(arguments, Mapping) else (("", arguments),)
    wanted = languages or ("sql", "shell")
    return next((text for key, text in values if isinstance(text, str) and language_of(text, key) in wanted), None)


def tokens(text: str, language: Language, *, concrete: bool = False) -> list[Token]:
    """Returns the first MOST_TOKENS tokens of a statement, without its comments.

    ``concrete``: keep harmless words of a command line, in place of placeholders.
    """
    known = text[:STATEMENT_CHARS]
    return list(islice(_sql(known) if language == "sql" else _shell(known, concrete=concrete), MOST_TOKENS))


def words(text: str) -> list[str]:
    """Returns the first MOST_TOKENS words, strings, numbers and signs of a text in any language."""
    return _FORMS["plain"].findall(text[:TEXT_CHARS])[:MOST_TOKENS]


def _sql(text: str) -> Iterator[Token]:
    for match in _FORMS["sql"].finditer(text):
        kind, word = match.lastgroup or "", match[0]
        if kind == "sign" or word.casefold() in SQL_WORDS:
            yield Token(word, word)
        elif kind != "left_out":
            yield Token(word, _SHOWN[kind])


def _shell(text: str, *, concrete: bool) -> Iterator[Token]:
    """Yields the pieces of a command line; quoted SQL of a database client as one token with the form of the SQL."""
    line = list(islice(pieces(text), MOST_TOKENS))
    has_client = any(bare(piece.text).rsplit("/", 1)[-1] in DATABASES for piece in line)
    for piece, form in zip(line, shown(line, concrete=concrete), strict=True):
        inner = bare(piece.text)
        if has_client and form == "<string>" and inner != piece.text and language_of(inner) == "sql":
            yield Token(piece.text, f'"{" ".join(token.shown for token in islice(_sql(inner), MOST_TOKENS))}"')
        else:
            yield Token(piece.text, form)
