"""Moves of calls that pass a statement: SQL, a command line, a program, GraphQL, or an action in words ("heat mug 1").

A tool that takes statements does everything, so the moves come from the statement: its kind and tables, its program and
subcommand, the functions that it calls, its verb and the kinds of its objects.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import Literal

from retrieval.patterns import patterns, word_sets
from writer.analysis.command_goals import mains
from writer.analysis.command_moves import command_moves, inner_line, request_moves
from writer.analysis.command_names import DATABASES, PROGRAMS
from writer.analysis.commands import DEEPEST, is_command_key
from writer.analysis.move_values import LITTLE, NAMED, last_word, normal, placeholder_of, singular, value_of
from writer.analysis.state_changes import changes_state
from writer.analysis.statements import SQL_WORDS, Token, language_of, tokens

Language = Literal["sql", "shell", "act", "code", "graphql"]

ACT_CHARS = 200
"""Maximum characters of an action in words that are read."""
ACT_WORDS = 16
"""Maximum words of an action; a longer text is prose."""
MOST_OBJECTS = 8
"""Maximum number of objects of an action that are read."""
WORD_CHARS = 40

_ALIKE = {"<=": "<", ">=": ">", "!=": "<>", "int": "integer", "decimal": "numeric"}
"""Words and signs of SQL, each with another one that tells plans apart as well."""
SESSION = "sql:session"
"""Move of SQL statements that only prepare others, such as SET, or look at the schema."""
_FORMS = patterns("writer.analysis", "statement_moves")
_WORDS = word_sets("writer.analysis", "statement_moves")


CODE_CHARS = 8_000
MOST_FUNCTIONS = 30


def language_in(tool: str, name: str, text: str, *, only: bool) -> Language | None:
    """Returns an argument's language: SQL, shell, code, GraphQL or an action in words; None: it is an ordinary value.

    Args:
        tool: name of the tool.
        name: name of the argument; empty: the call's input is only this text.
        text: the argument's value.
        only: true if the call has no other argument.
    """
    takes = taken(tool, name)
    if "code" in takes and _FORMS["code"].search(text[:CODE_CHARS]):
        return "code"
    if _FORMS["graphql"].match(text):
        return "graphql"
    language = language_of(text, name)
    if (language == "sql" or ("sql" in takes and _FORMS["more_sql"].match(text))) and _FORMS["sql"].match(
        " ".join(token.text.casefold() for token in tokens(text, "sql")) + " "
    ):
        return "sql"
    if only and "actions" in takes and "lines" not in takes and 0 < len(words := _act_words(text)) <= ACT_WORDS:
        # "make test" is a command line, "go to drawer 1" an action, though "go" is a program
        plain = LITTLE.isdisjoint(words) and not re.search(r" \d{1,3}\b", text)
        named = is_command_key(name, text) and words[0] in PROGRAMS and plain
        if language != "shell" or not (_FORMS["line"].search(text) or named):
            return "act"
    return "shell" if language == "shell" and (is_command_key(name, text) or takes & {"lines", "actions"}) else None


@lru_cache(maxsize=4096)  # the same few tools and arguments come in every run
def taken(tool: str, name: str) -> frozenset[str]:
    """Returns what a tool takes in an argument of this name: command lines, SQL, programs ("code"), actions in words.

    The name of the tool alone tells little: ``perform_refund(order_id=…)`` and ``play_song(title=…)`` take no action.
    """
    word, actions = last_word(name), _WORDS["takes_actions"]
    by_tool = (not word or word in _WORDS["plain_names"]) and not actions.isdisjoint(re.findall("[a-z]+", normal(tool)))
    takes = {
        "lines": _FORMS["takes_lines"].search(tool) is not None,
        "sql": _FORMS["takes_sql"].search(tool) is not None or word in _WORDS["sql_names"],
        "code": _FORMS["takes_code"].search(tool) is not None or normal(name) in _WORDS["code_names"],
        "actions": word in actions or by_tool,
    }
    return frozenset(what for what, is_taken in takes.items() if is_taken)


def statement_moves(language: Language, text: str, named: Collection[str] = ()) -> Iterator[tuple[str, bool]]:
    """Yields the moves of a statement, each with whether it changes something.

    ``named`` has the words of the run's task, in the form of ``singular``: the objects of its actions, and the tables,
    columns and values of SQL that changes something.
    """
    if language == "sql":
        yield from _sql(text, named)
    elif language == "shell":
        yield from _line(text, named)
    elif language == "code":
        names = dict.fromkeys(module or function for module, function in _FORMS["code"].findall(text[:CODE_CHARS]))
        for name in list(names)[:MOST_FUNCTIONS]:
            yield f"code:{normal(name)}", True
    elif language == "graphql":
        yield from _graphql(text[:CODE_CHARS])
    else:
        yield from _action(text, named)


def _graphql(text: str) -> Iterator[tuple[str, bool]]:
    """Yields the kind of a GraphQL operation and its outer fields, as "mutation" and "cancelOrder"."""
    if (operation := _FORMS["graphql"].match(text)) is None:
        return
    changes = operation[1] == "mutation"
    yield f"gql:{operation[1]}", changes
    depth = 1
    for piece in _FORMS["graphql_piece"].finditer(text, operation.end()):
        depth += (piece["open"] is not None) - (piece["close"] is not None)
        if depth == 0:
            return
        if depth == 1 and piece["field"]:
            yield f"gql:{normal(piece['field'])}", changes


def _action(text: str, named: Collection[str]) -> Iterator[tuple[str, bool]]:
    """Yields an action's verb, and its objects; numbered places where the agent only looked are left out.

    A verb has its particle, after it or at the end, as in "turn on the lamp" and "turn the lamp off".
    """
    verb, *rest = [normal(word)[:WORD_CHARS] for word in _act_words(text)]
    particle = next((word for word in (*rest[:1], *rest[-1:]) if word in _WORDS["particles"]), "")
    acts = changes_state(verb) and (verb not in _WORDS["looks_around"] or (verb == "turn" and particle != ""))
    is_alone = verb in _WORDS["speaks"] or not changes_state(verb)
    if acts and particle:
        rest.remove(particle)
        verb = f"{verb} {particle}"
    yield f"act:{verb}", acts
    if is_alone:
        return
    numbered, changes = set(map(normal, _FORMS["numbered"].findall(text))), acts
    for word in rest[:MOST_OBJECTS]:
        if word in LITTLE:
            changes = acts and word != "from"  # what follows is where the object was
        elif singular(word) in named:
            yield f"act:{verb} {NAMED}", changes
        elif changes or word not in numbered:
            yield f"act:{verb} {word}", changes


def _act_words(text: str) -> Sequence[str]:
    """Returns the words of an action without numbers; empty for a text that is too long or is code."""
    if len(text) > ACT_CHARS or re.search(r"[\n=;{}]", text):
        return ()
    return _FORMS["act_word"].findall(text.replace("_", " "))


def _sql(text: str, named: Collection[str]) -> Iterator[tuple[str, bool]]:
    """Yields the moves of each SQL statement in a text; a transaction's beginning and its commit are none."""
    statement: list[Token] = []
    for token in (*tokens(text, "sql"), Token(";", ";")):
        if token.text == ";" and statement:
            yield from _sql_statement(statement, named)
            statement = []
        elif statement or (token.text != ";" and token.text.casefold() not in _WORDS["transaction"]):
            statement.append(token)


def _sql_statement(statement: Sequence[Token], named: Collection[str]) -> Iterator[tuple[str, bool]]:
    """Yields an SQL statement's moves: its kind and tables, columns and clauses, and values compared with columns.

    Where the statement changes something, names and values of the task are data, but for a schema and needed quotes.
    """
    words = [token.text.casefold() for token in statement]
    if words[0] in _WORDS["prepares"]:
        yield SESSION, False
        return
    verb = _verb(words)
    changes = verb not in {"select", "explain"}
    yield f"sql:{verb}", changes
    named = named if changes else ()  # what a query reads belongs to its plan
    before, column, told = words[0], "", _WORDS.get(f"in_{words[0]}", frozenset())
    inserted = _inserted(words) if verb == "insert" else {}
    types = _WORDS["types"] if words[0] in {"alter", "create"} else frozenset()
    for at, (token, word, after) in enumerate(zip(statement[1:], words[1:], [*words, ""][2:], strict=True), 1):
        column = inserted.get(at - 1, column)
        if word in told and before != "column":
            yield f"sql:{verb} {word}", changes
        elif (
            word in _WORDS["clauses"]
            or word in types
            or (word in _WORDS["signs"] and statement[at - 1].shown != "<identifier>")
        ):
            yield f"sql:{_ALIKE.get(word, word)}", changes
        elif token.shown == "<identifier>" or (word.isalpha() and after == "="):
            name = _column(word)
            inside = before == "from" and (words[at - 2] == "distinct" or words[max(at - 4, 0)] in {"extract", "trim"})
            shown, is_table = _shown(name, named), before in _WORDS["before_table"] and not inside
            if shown == NAMED:
                yield from ((f"sql:{form}", changes) for form in _forms_of_name(token.text, is_table=is_table))
            if is_table:
                yield f"sql:{verb} {shown}", changes
            elif len(name) > 1 and before != "as" and statement[at - 1].shown != "<identifier>":  # an alias otherwise
                column = name
                # a sign tells, as " >" or " desc", unless it is a bound of ids (id > 7)
                tells = after in _WORDS["signs"] and (after == "desc" or placeholder_of(column) != "<id>")
                yield f"sql.{shown} {_ALIKE.get(after, after)}" if tells else f"sql.{shown}", changes
        elif column and (value := _sql_value(column, token, "values" if at - 1 in inserted else before, named)):
            yield f"sql.{_shown(column, named)}={value}", changes
        before = word


def _shown(name: str, named: Collection[str]) -> str:
    """Returns the name of a table, a column, or an index such as "orders_total_idx"; NAMED if the task names it."""
    parts = set(map(singular, _FORMS["part"].findall(name))) - _WORDS["parts"]
    return NAMED if parts and parts.issubset(named) else name


def _forms_of_name(text: str, *, is_table: bool) -> Iterator[str]:
    """Yields the forms of a name in SQL that may be what a statement needs: a table's schema, and needed quotes."""
    if is_table and "." in text:
        yield f"{NAMED}."
    name = _column(text)
    if name.casefold() in SQL_WORDS or not _FORMS["plain"].fullmatch(name):
        yield f'"{NAMED}"'


def _verb(words: Sequence[str]) -> str:
    """Returns the kind of a statement of these words, as "delete" or "alter table"."""
    if words[0] == "with":
        return next((word for word in words if word in {"insert", "update", "delete", "merge"}), "select")
    if words[0] in {"alter", "create", "drop"}:
        return next((f"{words[0]} {word}" for word in words[1:5] if word in {"index", "table", "view"}), words[0])
    return words[0]


def _inserted(words: Sequence[str]) -> dict[int, str]:
    """Returns the columns of an INSERT's values by the places of the signs before these values."""
    if "values" not in words or "into" not in words:
        return {}
    start, columns = words.index("values"), [_column(word) for word in words if word not in {"(", ",", ")"}]
    columns = columns[columns.index("into") + 2 : columns.index("values")]
    places: dict[int, str] = {}
    depth = number = 0
    for at, word in enumerate(words[start:], start):
        depth += (word == "(") - (word == ")")
        if depth == 1 and word in {"(", ","}:
            number = number + 1 if word == "," else 0
            places[at] = columns[number] if number < len(columns) else ""
    return places


def _column(word: str) -> str:
    """Returns the name of a column or a table without its schema and its quotes."""
    return word.rsplit(".", 1)[-1].strip('"`')[:WORD_CHARS]


def _sql_value(column: str, token: Token, before: str, named: Collection[str]) -> str:
    """Returns the value that a column is compared with or set to; empty: it is data, or no value stands here.

    Of numbers only 0 and 1 are choices, because many databases write a boolean so; NULL in a row of values was not set.
    """
    word = token.text.casefold()
    if token.shown == "<string>" and before in _WORDS["compares"] | {"values"}:
        return value_of(column, token.text.strip("'"), named)
    if word in {"true", "false"} and before in {"=", "is", "not", "values"}:
        return word
    if word == "null" and before in {"=", "is"}:
        return word
    return word if word in {"0", "1"} and before in {"=", "values"} and placeholder_of(column) is None else ""


def _line(text: str, named: Collection[str], depth: int = 0) -> Iterator[tuple[str, bool]]:
    """Yields the moves of a command line: SQL of a database client, the command behind ssh, or the command itself."""
    for command in mains(text):
        texts = (operand for operand in command.operands if " " in operand)
        statement = next((each for each in texts if language_of(each) == "sql" or _FORMS["more_sql"].match(each)), None)
        if command.program in DATABASES and statement is not None:
            yield f"shell:{command.program}", False
            yield from _sql(statement, named)
        elif depth < DEEPEST and (inner := inner_line(command)):
            yield f"shell:{command.program} {command.sub}".strip(), False
            yield from _line(inner, named, depth + 1)
        elif command.program == "curl":
            yield from request_moves(command.words)
        else:
            yield from command_moves(command)
