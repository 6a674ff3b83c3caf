"""A parser for command lines: pieces as a shell reads them, and the commands that they run.

One regular expression, linear in the text, that never raises: failed calls often have broken lines, and an open quote
must not hide the rest. (The parser bashlex refuses broken lines, and its licence is the GPL.)
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, NamedTuple

from retrieval.patterns import patterns, word_sets
from writer.analysis.command_names import INTERPRETERS, NESTED, PROGRAMS, SUBCOMMANDS, WRAPPERS

MOST_COMMANDS = 40
MOST_KEYS = 8
COMMAND_KEYS = ("command", "cmd", "commandline", "command_line", "bash", "shell", "shell_command")
"""Names of arguments whose text is a command line."""
LINE_CHARS = 40_000
"""Maximum characters of a command line that are read, here-documents included."""
SHELLS = frozenset({"bash", "sh", "zsh"})
DEEPEST = 3
"""Maximum levels of nested shells that are parsed, as in ``bash -c "sh -c …"``."""

Kind = Literal["word", "sign", "text", "quote"]

_FORMS = patterns("writer.analysis", "commands")
_WORDS = word_sets("writer.analysis", "commands")
_SEPARATORS = {"|", "||", "&&", ";", "&", "\n", "(", ")", "|&"}


class Piece(NamedTuple):
    """A word, sign, here-document (kind "text") or open quote of a command line, as it is written."""

    text: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Command:
    """A simple command without its wrappers (``sudo``, ``python -m``, the folder of its program).

    Attributes:
        program: name of the program; "run" for a script, with the script as first operand; "write" for a text that is
            redirected into a file.
        sub: subcommand of one or two words; empty: there is none.
        operands: words other than flags, without quotes; the last one is the here-document that the command reads.
        piped: true if the command reads the output of the command before it.
        words: words after the program as they are written, with flags and quotes.
    """

    program: str
    sub: str = ""
    operands: tuple[str, ...] = ()
    piped: bool = False
    words: tuple[str, ...] = ()


def with_lines(arguments: object) -> object:
    """Returns a call's arguments; a command that is a list of words becomes one line."""
    if not isinstance(arguments, Mapping):
        return arguments
    lines: dict[object, str] = {}
    for key in islice(arguments, MOST_KEYS):
        words = arguments[key]
        if str(key).casefold() not in COMMAND_KEYS or not isinstance(words, list) or not words:
            continue
        if all(isinstance(word, str) for word in words):
            shell = len(words) == 3 and words[0].rsplit("/", 1)[-1] in SHELLS and words[1] in {"-c", "-lc"}  # noqa: PLR2004
            lines[key] = words[2] if shell else shlex.join(words)
    return {**arguments, **lines} if lines else arguments


def is_command_key(key: object, text: object) -> bool:
    """Returns whether an argument of this name and value is a command line."""
    return isinstance(key, str) and key.casefold() in COMMAND_KEYS and isinstance(text, str)


def starts_command(first: str) -> bool:
    """Returns whether a text with this first word is a command line: the word is a known program, or a path."""
    return first in PROGRAMS or _FORMS["program_in_folder"].fullmatch(first) is not None


def pieces(text: str) -> Iterator[Piece]:
    """Yields the pieces of a command line; a here-document is one piece, a line break only if it ends a command."""
    last = "\n"
    for piece in _all_pieces(text):
        if piece.text != "\n" or last not in _SEPARATORS:
            last = piece.text
            yield piece


def _all_pieces(text: str) -> Iterator[Piece]:
    start = 0
    for document in _FORMS["here_document"].finditer(text):
        yield from _line_pieces(text[start : document.end("line")].removesuffix("\n"))
        yield Piece(document["text"], "text")
        start = document.end()
    yield from _line_pieces(text[start:])


def _line_pieces(text: str) -> Iterator[Piece]:
    for piece in _FORMS["piece"].finditer(text):
        if piece.lastgroup in {"word", "sign", "quote"}:
            yield Piece(piece[0], piece.lastgroup)  # type: ignore[arg-type]


def scripts(text: str) -> str:
    """Returns the here-documents of a command line and its quoted programs, as of ``python -c``; empty without one."""
    line = list(islice(pieces(text[:LINE_CHARS]), 40 * MOST_COMMANDS))
    told = [piece.text for piece in line if piece.kind == "text"]
    for program, flag, after in zip(line, line[1:], line[2:], strict=False):
        if flag.text in {"-c", "-e"} and program.text.rsplit("/", 1)[-1] in INTERPRETERS:
            told.append(bare(after.text))
    return "\n".join(told)


def bare(word: str) -> str:
    """Returns a word without its quotes."""
    return word[1:-1] if len(word) > 1 and word[0] == word[-1] and word[0] in "'\"" else word


def commands(text: str, depth: int = 0) -> list[Command]:
    """Returns the commands that a line runs, in order, about MOST_COMMANDS at most."""
    line: list[Command] = []
    for simple in simple_commands(islice(pieces(text[:LINE_CHARS]), 40 * MOST_COMMANDS)):
        line += _commands_of(simple, depth)
        if len(line) >= MOST_COMMANDS:
            break
    return line


@dataclass(slots=True)
class SimpleCommand:
    """A simple command as it is written.

    Attributes:
        piped: true if the command reads the output of the command before it.
        inputs: files that the command reads by a redirection.
        outputs: files that its output is redirected to.
        errors: files that its errors, and its other outputs, are redirected to.
        reads_document: true if the command reads a here-document that follows later in the line.
        document: the here-document, or the text after "<<<", that the command reads; empty: it reads none.
    """

    words: list[str] = field(default_factory=list)
    piped: bool = False
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    reads_document: bool = False
    document: str = ""


def simple_commands(line: Iterable[Piece]) -> list[SimpleCommand]:
    """Returns the simple commands of a line that have a word or are redirected to a file."""
    row = [SimpleCommand()]
    redirect = ""
    for piece in line:
        if piece.kind == "sign" and not set(piece.text) & set("<>"):
            row.append(SimpleCommand(piped=piece.text in {"|", "|&"}))
            redirect = ""
        elif piece.kind == "sign":
            redirect = "" if _FORMS["duplicates"].search(piece.text) else piece.text
            row[-1].reads_document |= redirect == "<<"
        elif piece.kind == "word" and redirect:
            if redirect == "<<<":
                row[-1].document = bare(piece.text)
            elif redirect != "<<":
                last = row[-1]
                to = last.inputs if redirect[0] == "<" else last.outputs if redirect[0] in ">1&" else last.errors
                to.append(bare(piece.text))
            redirect = ""
        elif piece.kind == "word":
            row[-1].words.append(piece.text)
        elif piece.kind == "text":
            at = next((at for at in reversed(range(len(row))) if row[at].reads_document), None)
            if at is not None:  # a document that ``cat`` only pipes on belongs to the command behind the pipe
                piped_on = row[at].words == ["cat"] and at + 1 < len(row) and row[at + 1].piped
                row[at + piped_on].document, row[at].reads_document = piece.text, False
    return [simple for simple in row if simple.words or simple.outputs or simple.errors]


def _commands_of(plain: SimpleCommand, depth: int) -> list[Command]:
    words = unwrapped(plain.words)
    if not words:
        return []
    program, rest, target = _program(bare(words[0])), [*words[1:], *plain.inputs], plain.outputs[-1:]
    if program in {"cat", "echo", "printf"} and target and target != ["/dev/null"]:
        return [Command("write", "", tuple(target), plain.piped)]
    if program in SHELLS and depth < DEEPEST:
        if len(rest) > 1 and re.fullmatch(r"-[a-z]*c", rest[0]):
            return commands(bare(rest[1]), depth + 1)
        if plain.document and not rest:
            return commands(plain.document, depth + 1)
    program, rest = _run_by_interpreter(program, rest, words[0])
    if program == "docker-compose":
        program, rest = "docker", ["compose", *rest]
    if program in SUBCOMMANDS:  # before its subcommand may be flags with a value, such as a folder
        at = 1 if rest and (program, rest[0]) in NESTED else 0
        while rest[at : at + 1] and rest[at] in _WORDS["global"]:
            rest = rest[:at] + rest[at + 2 :]
    sub, operands = _subcommand(program, [bare(word) for word in rest if not word.startswith("-")])
    operands += [plain.document] if plain.document else []
    return [Command(program, sub, tuple(operands), plain.piped, tuple(rest))]


def _run_by_interpreter(program: str, rest: list[str], as_written: str) -> tuple[str, list[str]]:
    """Returns the program that an interpreter runs, and its words: a known module, or "run" and the script.

    A program that is no interpreter comes back unchanged.
    """
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
    """Returns the words of a command, beginning with its program, without assignments and wrappers such as ``sudo``."""
    at = 0
    while at < len(words):
        word = bare(words[at])
        if _FORMS["assignment"].fullmatch(word) or word in {"{", "}", "!", "do", "then", "if", "else"}:
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
    plain = _FORMS["version"].sub("", name)
    return {"py.test": "pytest", "nodejs": "node"}.get(name, plain if plain in PROGRAMS else name)


def _subcommand(program: str, operands: list[str]) -> tuple[str, list[str]]:
    if program not in SUBCOMMANDS or not operands or not re.fullmatch(r"[a-z][a-z-]{1,19}", operands[0]):
        return "", operands
    if program in {"npm", "yarn", "pnpm", "bun"} and operands[0] in {"test", "start", "build"}:
        return "run", operands
    if (program, operands[0]) in NESTED and len(operands) > 1:
        return " ".join(operands[:2]), operands[2:]
    return operands[0], operands[1:]
