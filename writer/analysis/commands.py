"""Command lines, taken apart: pieces as a shell reads them, and the commands that they run.

One regular expression, linear in the text, which never raises: a command fails by what is broken in it, so an open
quote must not hide the rest. (bashlex, the parser for this, refuses broken lines, and its licence is the GPL.)
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, NamedTuple

from writer.analysis.command_names import INTERPRETERS, NESTED, PROGRAMS, SUBCOMMANDS, WRAPPERS

MOST_COMMANDS = 40
MOST_KEYS = 8
COMMAND_KEYS = ("command", "cmd", "commandline", "command_line", "bash", "shell", "shell_command")
"""Names of arguments whose text is a command line."""
LINE_CHARS = 40_000
"""Characters of a line that are looked at, here-documents included."""
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
        operands: its words that are no flags, without their quotes.
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
    shell = len(words) == 3 and words[0].rsplit("/", 1)[-1] in {"bash", "sh", "zsh"} and words[1] in {"-c", "-lc"}  # noqa: PLR2004
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
    for words, piped, target in _simple(islice(pieces(text[:LINE_CHARS]), 40 * MOST_COMMANDS)):
        found += _commands_of(words, piped=piped, target=target, depth=depth)
        if len(found) >= MOST_COMMANDS:
            break
    return found


def _simple(line: Iterator[Piece]) -> Iterator[tuple[list[str], bool, str]]:
    """Yields each command's words, whether it is piped into, and the file that it writes to."""
    words: list[str] = []
    piped, target, redirect = False, "", ""
    for piece in line:
        if piece.kind == "sign" and piece.text in _SEPARATORS:
            if words:
                yield words, piped, target
            words, piped, target, redirect = [], piece.text == "|", "", ""
        elif piece.kind == "sign":
            redirect = "" if "&" in piece.text else piece.text
        elif piece.kind == "word" and redirect:
            target = bare(piece.text) if redirect in {">", ">>"} else target
            words += [piece.text] if redirect == "<" else []
            redirect = ""
        elif piece.kind == "word":
            words.append(piece.text)
    if words:
        yield words, piped, target


def _commands_of(words: Sequence[str], *, piped: bool, target: str, depth: int) -> list[Command]:
    words = unwrapped(words)
    if not words:
        return []
    program, rest = _program(bare(words[0])), list(words[1:])
    if program in {"cat", "echo", "printf"} and target and target != "/dev/null":
        return [Command("write", "", (target,), piped)]
    if program in {"bash", "sh", "zsh"} and len(rest) > 1 and re.fullmatch(r"-[a-z]*c", rest[0]) and depth < DEEPEST:
        return commands(bare(rest[1]), depth + 1)
    if program in INTERPRETERS and "-m" in rest[:3] and (at := rest.index("-m") + 1) < len(rest):
        module = _program(bare(rest[at]))
        known = module in PROGRAMS
        program, rest = (
            module if known else "run",
            rest[at + 1 :] if known else [module.replace(".", "/"), *rest[at + 1 :]],
        )
    elif program in INTERPRETERS and rest and not rest[0].startswith("-"):
        program = "run"
    elif "/" in words[0] and program not in PROGRAMS:
        program, rest = "run", list(words)
    if program == "docker-compose":
        program, rest = "docker", ["compose", *rest]
    sub, operands = _subcommand(program, [bare(word) for word in rest if not word.startswith("-")])
    return [Command(program, sub, tuple(operands), piped)]


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
