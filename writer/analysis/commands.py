"""Command lines, taken apart: pieces as a shell reads them, and the commands that they run.

One regular expression, linear in the text, which never raises: a command fails by what is broken in it, so an open
quote must not hide the rest. (bashlex, the parser for this, refuses broken lines, and its licence is the GPL.)
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, NamedTuple

from writer.analysis.command_names import INTERPRETERS, NESTED, PROGRAMS, SUBCOMMANDS, WRAPPERS

MOST_COMMANDS = 40
MOST_KEYS = 8
COMMAND_KEYS = ("command", "cmd", "commandline", "command_line", "bash", "shell", "shell_command")
"""Names of arguments whose text is a command line."""
LINE_CHARS = 40_000
"""Characters of a line that are looked at, here-documents included."""
SHELLS = frozenset({"bash", "sh", "zsh"})
DEEPEST = 3
"""Shells within shells that are looked into, as in ``bash -c "sh -c …"``."""

Kind = Literal["word", "sign", "text", "quote"]

_PIECE = re.compile(
    r"""(?xs)
    (?P<left_out> (?<!\S)\#[^\n]* | \\\n )
    | (?P<sign> \d?>{1,2}(?:&\d)? | [<|&]{1,3} | [;()\n] )
    | (?P<word> (?: \$'(?:\\.|[^'\\])*' | '[^']*' | "(?:\\.|[^"\\])*" | \\. | [^\s'"\\|&;<>()] )+ )
    | (?P<quote> [^\s] )
    """
)
_HERE_DOCUMENT = re.compile(
    r"""(?xs) (?P<line> (?<!<)<<-?[ \t]*(?P<quote>['"]?)(?P<end>\w{1,40})(?P=quote)[^\n]{0,400}\n )
    (?P<text> .*? ) (?: ^[ \t]*(?P=end)[ \t]*$ | \Z )""",
    re.MULTILINE,
)
_PROGRAM_IN_FOLDER = re.compile(r"\./(?:[\w.-]+/){0,8}[\w.-]+|(?:\.{0,2}/)?(?:[\w.-]+/){0,8}bin/[\w.-]+")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_VERSION = re.compile(r"(?<=[a-z])[\d.]+$")
_SEPARATORS = {"|", "||", "&&", ";", "&", "\n", "(", ")", "|&"}


class Piece(NamedTuple):
    """A word, sign, here-document or open quote of a command line, as it is written."""

    text: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Command:
    """A simple command, without what it is wrapped in (``sudo``, ``python -m``, the folder of its program).

    Attributes:
        program: its name; "run" of a script, which is its first operand; "write" of a text put into a file.
        sub: its subcommand, of one word or two, or nothing.
        operands: its words that are no flags, without their quotes; last the here-document that it reads.
        piped: whether it reads what the command before it wrote.
    """

    program: str
    sub: str = ""
    operands: tuple[str, ...] = ()
    piped: bool = False


def with_lines(given: object) -> object:
    """Returns a call's arguments with a command that came as a list of words as one line."""
    if not isinstance(given, Mapping):
        return given
    lists = [key for key in islice(given, MOST_KEYS) if str(key).casefold() in COMMAND_KEYS and _is_words(given[key])]
    return {**given, **{key: _joined(given[key]) for key in lists}} if lists else given


def _is_words(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(word, str) for word in value)


def _joined(words: list[str]) -> str:
    shell = len(words) == 3 and words[0].rsplit("/", 1)[-1] in SHELLS and words[1] in {"-c", "-lc"}  # noqa: PLR2004
    return words[2] if shell else shlex.join(words)


def is_command_key(key: object, text: object) -> bool:
    """Returns whether an argument of that name and value is a command line."""
    return isinstance(key, str) and key.casefold() in COMMAND_KEYS and isinstance(text, str)


def starts_command(first: str) -> bool:
    """Returns whether a text with this first word is a command line."""
    return first in PROGRAMS or _PROGRAM_IN_FOLDER.fullmatch(first) is not None


def pieces(text: str) -> Iterator[Piece]:
    """Yields the pieces of a command line, each here-document as one; a line's end where it ends a command."""
    last = "\n"
    for piece in _all_pieces(text):
        if piece.text != "\n" or last not in _SEPARATORS:
            last = piece.text
            yield piece


def _all_pieces(text: str) -> Iterator[Piece]:
    start = 0
    for found in _HERE_DOCUMENT.finditer(text):
        yield from _of_lines(text[start : found.end("line")].removesuffix("\n"))
        yield Piece(found["text"], "text")
        start = found.end()
    yield from _of_lines(text[start:])


def _of_lines(text: str) -> Iterator[Piece]:
    for found in _PIECE.finditer(text):
        if found.lastgroup in {"word", "sign", "quote"}:
            yield Piece(found[0], found.lastgroup)  # type: ignore[arg-type]


def bare(word: str) -> str:
    """Returns a word without its quotes."""
    return word[1:-1] if len(word) > 1 and word[0] == word[-1] and word[0] in "'\"" else word


def commands(text: str, depth: int = 0) -> list[Command]:
    """Returns the first commands that a line runs, in order."""
    found: list[Command] = []
    for plain in _plain(islice(pieces(text[:LINE_CHARS]), 40 * MOST_COMMANDS)):
        found += _commands_of(plain, depth)
        if len(found) >= MOST_COMMANDS:
            break
    return found


@dataclass(slots=True)
class _Plain:
    """A simple command as it is written.

    Attributes:
        words: its own, and the files that it reads.
        piped: whether it reads what the command before it wrote.
        target: the file that it writes to.
        reads_document: whether a here-document follows for it.
        document: the here-document that it reads.
    """

    words: list[str] = field(default_factory=list)
    piped: bool = False
    target: str = ""
    reads_document: bool = False
    document: str = ""


def _plain(line: Iterable[Piece]) -> list[_Plain]:
    """Returns a line's simple commands; a here-document that is only piped on belongs to who reads it."""
    found = [_Plain()]
    redirect = ""
    for piece in line:
        if piece.kind == "sign" and piece.text in _SEPARATORS:
            found.append(_Plain(piped=piece.text == "|"))
            redirect = ""
        elif piece.kind == "sign":
            redirect = "" if "&" in piece.text else piece.text
            found[-1].reads_document |= redirect == "<<"
        elif piece.kind == "word" and redirect:
            found[-1].target = bare(piece.text) if redirect in {">", ">>"} else found[-1].target
            found[-1].words += [piece.text] if redirect == "<" else []
            redirect = ""
        elif piece.kind == "word":
            found[-1].words.append(piece.text)
        elif piece.kind == "text":
            _give(piece.text, found)
    return [plain for plain in found if plain.words]


def _give(document: str, line: Sequence[_Plain]) -> None:
    """Gives a here-document to the last command that asked for one, or to whom ``cat`` pipes it."""
    for at in reversed(range(len(line))):
        if line[at].reads_document:
            passed_on = line[at].words == ["cat"] and at + 1 < len(line) and line[at + 1].piped
            reader = line[at + passed_on]
            reader.document, line[at].reads_document = document, False
            return


def _commands_of(plain: _Plain, depth: int) -> list[Command]:
    words = unwrapped(plain.words)
    if not words:
        return []
    program, rest = _program(bare(words[0])), list(words[1:])
    if program in {"cat", "echo", "printf"} and plain.target and plain.target != "/dev/null":
        return [Command("write", "", (plain.target,), plain.piped)]
    if program in SHELLS and depth < DEEPEST:
        if len(rest) > 1 and re.fullmatch(r"-[a-z]*c", rest[0]):
            return commands(bare(rest[1]), depth + 1)
        if plain.document and not rest:
            return commands(plain.document, depth + 1)
    program, rest = _run_by_interpreter(program, rest, words[0])
    if program == "docker-compose":
        program, rest = "docker", ["compose", *rest]
    sub, operands = _subcommand(program, [bare(word) for word in rest if not word.startswith("-")])
    return [Command(program, sub, tuple([*operands, plain.document] if plain.document else operands), plain.piped)]


def _run_by_interpreter(program: str, rest: list[str], as_written: str) -> tuple[str, list[str]]:
    """Returns what an interpreter runs and its words: a known module, or "run" and a script; else as it was."""
    if program in INTERPRETERS and "-m" in rest[:3] and (at := rest.index("-m") + 1) < len(rest):
        module = _program(bare(rest[at]))
        if module in PROGRAMS:
            return module, rest[at + 1 :]
        return "run", [module.replace(".", "/"), *rest[at + 1 :]]
    if program in INTERPRETERS and rest and not rest[0].startswith("-"):
        return "run", rest
    if "/" in as_written and program not in PROGRAMS:
        return "run", [as_written, *rest]
    return program, rest


def unwrapped(words: Sequence[str]) -> Sequence[str]:
    """Returns a command's words from its program on: without assignments and programs that run another."""
    at = 0
    while at < len(words):
        word = bare(words[at])
        if _ASSIGNMENT.fullmatch(word) or word in {"{", "}", "!", "do", "then", "if", "else"}:
            at += 1
        elif word in WRAPPERS:
            at += 1
            while at < len(words) and re.fullmatch(r"-\S*|\d+[smh]?", words[at]):
                at += 1
        elif at + 1 < len(words) and words[at + 1] in {"run", "exec"} and word in {"uv", "poetry", "pipenv", "bundle"}:
            at += 2
        else:
            break
    return words[at:]


def _program(word: str) -> str:
    name = word.rsplit("/", 1)[-1] if "/" in word else word
    plain = _VERSION.sub("", name)
    return {"py.test": "pytest", "nodejs": "node"}.get(name, plain if plain in PROGRAMS else name)


def _subcommand(program: str, operands: list[str]) -> tuple[str, list[str]]:
    if program not in SUBCOMMANDS or not operands or not re.fullmatch(r"[a-z][a-z-]{1,19}", operands[0]):
        return "", operands
    if program in {"npm", "yarn", "pnpm", "bun"} and operands[0] in {"test", "start", "build"}:
        return "run", operands
    if (program, operands[0]) in NESTED and len(operands) > 1:
        return " ".join(operands[:2]), operands[2:]
    return operands[0], operands[1:]
