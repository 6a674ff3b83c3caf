"""Moves of calls that pass a statement: SQL, a command line, a program, or an action in words ("heat mug 1").

A tool that takes statements does everything, so the moves come from the statement: its kind and tables, its program and
subcommand, the functions that it calls, its verb and the kinds of its objects.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import Literal

from writer.analysis.command_goals import mains
from writer.analysis.command_names import DATABASES, PROGRAMS, READERS, SUBCOMMANDS
from writer.analysis.commands import Command, is_command_key
from writer.analysis.move_values import LITTLE, NAMED, normal, singular, value_of
from writer.analysis.state_changes import changes_state
from writer.analysis.statements import language_of, tokens

Language = Literal["sql", "shell", "act", "code"]

ACT_CHARS = 200
"""Maximum characters of an action in words, and of an operand of a command, that are read."""
ACT_WORDS = 16
"""Maximum words of an action; a longer text is prose."""
MOST_OBJECTS = 8
"""Maximum number of objects of an action, and of operands of a command, that are read."""
MOST_OPERANDS = 2
"""Maximum number of a command's operands that become moves; later operands are mostly values of flags."""
WORD_CHARS = 40

_TAKES_ACTIONS = frozenset(
    """
    act action behave command do env environment execute game instruction interact move perform play robot step world
    """.split()
)
"""Words in the names of tools, and of arguments, that take an action in words."""
_TAKES_LINES = re.compile(r"(?i)bash|shell|terminal|console|cmd|ssh|(?:^|[_.])sh$|^(?:run|exec|execute)(?:_command)?$")
"""Names of tools that run command lines."""
_LINE = re.compile(r"(?<!\S)[-~./]\S|[|&$]|\S\.\S")
"""Signs of a command line: a flag, a path, a pipe, a variable, a file's name."""

_SQL = re.compile(
    r"select (?:.* )?from |select [^a-z]|select [\w.]+ \(|with [\w\"]+ (?:as|\()|insert (?:or \w+ )?into |update \S+ "
    r"(?:as \w+ |\w+ )?set |delete from |truncate |merge into |grant |revoke |explain |analyze "
    r"|(?:alter|create|drop) (?:(?:or|replace|temp|temporary|unique|global|materialized) )*(?:column|database|extension"
    r"|function|index|policy|role|schema|sequence|table|trigger|type|user|view) ",
)
"""Beginnings of SQL statements; "drop mug 1" and "update my address" are no SQL."""
_BEFORE_TABLE = frozenset("from join into update table truncate view exists only".split())
_CLAUSES = frozenset(
    """
    avg case cast conflict count cross distinct except exists extract filter group having intersect join lateral left
    max min not over partition returning set sum union using where
    """.split()
)
"""Words of a statement that show how it computes its result."""
_COMPARES = frozenset(("=", "in", "like", "ilike", "("))

_OPERAND = re.compile(r"([a-z]{2,24}(?:-[a-z]{2,24}){0,3})(?:[=<>~!@].*)?")
"""Pattern of a lower-case operand, without a version after it; names with digits or dots are data."""
_SCRIPT = re.compile(r"(?:.*/)?([A-Za-z][A-Za-z_-]{0,30})(?:\.\w{1,4})?")
_SHOWS = frozenset("diff help history info log logs ps status version".split())
"""Subcommands that show state."""
_PREPARES = frozenset(("chmod", "git add", "git fetch", "mkdir", "touch"))
"""Commands that prepare others, and are no moves."""
_FOLDERS = frozenset("app lib src tests".split())
"""Operands that stand for a whole project in any command."""
_ON_DATA = frozenset(
    """
    chown cp createdb createuser dropdb echo git-branch git-checkout git-clone git-commit git-merge git-switch git-tag
    gpg kill ln mv mysqldump pg_dump pg_restore pkill rm rmdir rsync scp sftp ssh useradd usermod write
    """.split()
)
"""Commands whose operands are names and texts that differ in every run."""

_TAKES_CODE = re.compile(r"(?i)python|jupyter|notebook|javascript|(?:^|_)repl$|interpreter")
"""Names of tools that run programs."""
_CODE_NAMES = frozenset(("code", "script", "source", "snippet", "program"))
"""Names of arguments that hold a program."""
_CODE = re.compile(r"\b(?:import|from|require)\b\s*\(?['\"]?([A-Za-z_]\w{0,40})|\b([A-Za-z_]\w{1,40})\s{0,4}\(")
"""Pattern of a module that a program imports, or a function that it calls."""
CODE_CHARS = 8_000
MOST_FUNCTIONS = 30

_ACT_WORD = re.compile(r"[぀-ヿ㐀-鿿]+|(?<!\w)(?:[^\W\d_]{3,}(?=\d{0,3}(?!\w))|[^\W\d_]+(?!\w))")
"""Pattern of a word of an action, without the number of an object; "W1001" is an id and no word."""
_NUMBERED = re.compile(r"([^\W\d_]{2,}) ?\d{1,3}(?!\w)")
"""Pattern of an object with its number, as in "drawer 3"."""
_LOOKS_AROUND = frozenset("close examine go goto inventory look move navigate open turn wait walk".split())
"""Verbs by which an agent looks for something."""
_SPEAKS = frozenset("answer ask finish reply say tell type write".split())
"""Verbs whose object is a text."""


def language_in(tool: str, name: str, text: str, *, only: bool) -> Language | None:
    """Returns the language of a call's argument that is a statement; None: it is an ordinary value.

    Args:
        tool: name of the tool.
        name: name of the argument; empty: the call's input is only this text.
        text: the argument's value.
        only: whether the call has no other argument.
    """
    takes = _taken(tool, name)
    if "code" in takes and _CODE.search(text[:CODE_CHARS]):
        return "code"
    language = language_of(text, name)
    if language == "sql" and _SQL.match(" ".join(token.text.casefold() for token in tokens(text, "sql")) + " "):
        return "sql"
    if only and "actions" in takes and "lines" not in takes and 0 < len(words := _act_words(text)) <= ACT_WORDS:
        # "make test" is a command line, "go to drawer 1" an action, though "go" is a program
        plain = LITTLE.isdisjoint(words) and not re.search(r" \d{1,3}\b", text)
        named = is_command_key(name, text) and words[0] in PROGRAMS and plain
        if language != "shell" or not (_LINE.search(text) or named):
            return "act"
    return "shell" if language == "shell" and (is_command_key(name, text) or takes & {"lines", "actions"}) else None


@lru_cache(maxsize=4096)  # the same few tools and arguments come in every run
def _taken(tool: str, name: str) -> frozenset[str]:
    """Returns what a tool takes in an argument of this name: command lines, programs ("code"), actions in words."""
    takes = {
        "lines": _TAKES_LINES.search(tool) is not None,
        "code": _TAKES_CODE.search(tool) is not None or normal(name) in _CODE_NAMES,
        "actions": not _TAKES_ACTIONS.isdisjoint(re.findall(r"[a-z]+", f"{tool} {name}".casefold())),
    }
    return frozenset(what for what, is_taken in takes.items() if is_taken)


def statement_moves(language: Language, text: str, named: Collection[str] = ()) -> Iterator[tuple[str, bool]]:
    """Yields the moves of a statement, each with whether it changes something.

    ``named`` has the words of the run's task, in the form of ``singular``: the objects of its actions.
    """
    if language == "sql":
        yield from _sql(text)
    elif language == "shell":
        for command in mains(text):
            yield from _command(command)
    elif language == "code":
        names = dict.fromkeys(module or function for module, function in _CODE.findall(text[:CODE_CHARS]))
        for name in list(names)[:MOST_FUNCTIONS]:
            yield f"code:{normal(name)}", True
    else:
        yield from _action(text, named)


def _action(text: str, named: Collection[str]) -> Iterator[tuple[str, bool]]:
    """Yields an action's verb, and its objects; numbered places where the agent only looked are left out."""
    verb, *rest = [normal(word)[:WORD_CHARS] for word in _act_words(text)]
    acts = changes_state(verb) and verb not in _LOOKS_AROUND
    yield f"act:{verb}", acts
    if verb in _SPEAKS or not changes_state(verb):
        return
    numbered, changes = set(map(normal, _NUMBERED.findall(text))), acts
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
    return _ACT_WORD.findall(text.replace("_", " "))


def _sql(text: str) -> Iterator[tuple[str, bool]]:
    """Yields an SQL statement's moves: its kind and tables, columns and clauses, and values compared with columns."""
    statement = tokens(text, "sql")
    words = [token.text.casefold() for token in statement]
    verb = words[0]
    if verb == "with":
        verb = next((word for word in words if word in {"insert", "update", "delete", "merge"}), "select")
    if verb in {"alter", "create", "drop"}:
        verb = next((f"{verb} {word}" for word in words[1:5] if word in {"index", "table", "view"}), verb)
    changes = verb not in {"select", "explain"}
    yield f"sql:{verb}", changes
    before = column = ""
    for at, (token, word) in enumerate(zip(statement, words, strict=True)):
        if word in _CLAUSES:
            yield f"sql:{word}", changes
        elif token.shown == "<identifier>":
            name = word.rsplit(".", 1)[-1].strip('"`')[:WORD_CHARS]
            if before in _BEFORE_TABLE:
                yield f"sql:{verb} {name}", changes
            elif len(name) > 1 and before != "as" and statement[at - 1].shown != "<identifier>":  # an alias otherwise
                column = name
                yield f"sql.{column}", changes
        elif token.shown == "<string>" and column and before in _COMPARES:
            yield f"sql.{column}={value_of(column, token.text.strip(chr(39)))}", changes
        before = word


def _command(command: Command) -> Iterator[tuple[str, bool]]:
    """Yields program and subcommand of a command, and its operands that are plain words; SQL of a database client."""
    statement = next((text for text in command.operands if " " in text and language_of(text) == "sql"), None)
    if command.program in DATABASES and statement is not None:
        yield f"shell:{command.program}", False
        yield from _sql(statement)
        return
    operands = [word for word in command.operands[:MOST_OBJECTS] if len(word) <= ACT_CHARS]
    if command.program == "kubectl":
        operands = [word.split("/", 1)[0] for word in operands]
    plain = [operand[1] for operand in map(_OPERAND.fullmatch, operands) if operand]
    sub = command.sub
    if not sub and command.program in SUBCOMMANDS:  # a flag with a value stands before it, as in "git -C folder pull"
        sub = next(iter(plain), "")
    label = normal(f"{command.program[:WORD_CHARS]} {sub}".strip())
    if label in _PREPARES:
        return
    if command.program in READERS or sub in _SHOWS or (sub and not changes_state(sub)):
        yield f"shell:{label}", False
        return
    yield f"shell:{label}", True
    if command.program == "run":
        plain = [normal(script[1]) for script in map(_SCRIPT.fullmatch, operands[:1]) if script]
    elif label.replace(" ", "-") in _ON_DATA or command.program in DATABASES:
        plain = []
    for word in [word for word in plain if word != sub and word not in _FOLDERS][:MOST_OPERANDS]:
        yield f"shell:{label}={word}", True
