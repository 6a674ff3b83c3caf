"""Command lines, looked into: which files they read, what they search for, and what they may have changed."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from writer.analysis.commands import DEEPEST, LINE_CHARS, Piece, bare, pieces, unwrapped
from writer.findings.aspects import (
    MOST_LINES,
    SHELL_FOLDER,
    Aspect,
    Lines,
    anything_else,
    changing,
    entering,
    reading,
    searching,
)
from writer.findings.paths import Place, is_plain, tidy
from writer.findings.programs import READERS, SEARCHERS, SILENT, changed_by, is_steady, operands, shows
from writer.findings.queries import exactly

MOST_PIECES = 400
"""Of a line that is longer, nobody knows what it changes."""
_RUNS_ANOTHER = re.compile(r"\$\(|`|<\(|>\(")
"""What runs another command."""
_NOWHERE = {"/dev/null", "/dev/stdout", "/dev/stderr", "-"}
_PATTERN_FLAGS = re.compile(r"-[a-zA-Z]*[ef]|--(?:regexp|file)(?:=.*)?|--files")
_TAKES_VALUE = re.compile(
    r"-(?:[ABCmefgtTdD]|maxdepth|mindepth|name|iname|path|type)|--(?:include|exclude|exclude-dir|glob|type|type-not"
    r"|max-count|context|after-context|before-context|regexp|file|max-depth|iglob)"
)
_PLAIN_FLAGS = re.compile(r"-[nrRHhiwlLcoEFPsvxaIqSzU]+")
_SAYS_NOTHING_NEW = re.compile(r"--colou?r(?:=\w+)?|--no-heading|--line-number|--recursive")
_SED_LINES = re.compile(r"(\d{1,9})(?:,(\d{1,9}|\$))?p;?(?:\d{1,9}q)?")


@dataclass(slots=True)
class _Command:
    """A simple command: its words, bare, and the files that what it says goes into."""

    words: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    hidden: bool = False
    """Whether what it says goes elsewhere."""


def aspects_of_line(line: str, folder: str = "", depth: int = 0) -> list[Aspect]:
    """Returns what a command line reads, searches and may have changed, in its order.

    At most one of them is shown: what is answered by several commands together belongs to none.
    """
    if len(line) > LINE_CHARS or _RUNS_ANOTHER.search(line):
        return _of_anything(line)
    found = list(islice(pieces(line), MOST_PIECES + 1))
    if len(found) > MOST_PIECES or any(map(_hides, found)):
        return _of_anything(line)
    looked = _Line(line, folder, depth)
    for pipeline in _pipelines((piece.text, piece.kind) for piece in found):
        looked.take(pipeline)
    return looked.aspects()


def _hides(piece: Piece) -> bool:
    """Returns whether a piece may not be what it looks like."""
    return piece.kind == "quote" or piece.text.startswith(("$'", '$"'))


def _of_anything(line: str) -> list[Aspect]:
    return [changing("", query=line, shows=True)]


def _pipelines(found: Iterator[tuple[str, str]]) -> Iterator[list[_Command]]:
    """Yields the commands of a line, those together that pass on what they say."""
    pipeline, command, redirect = [_Command()], None, ""
    for text, kind in found:
        command = pipeline[-1]
        if redirect and kind == "word":
            _redirected(command, redirect, bare(text))
            redirect = ""
        elif kind == "word":
            command.words.append(text)
        elif kind == "sign" and text in {"|", "|&"}:
            pipeline.append(_Command())
        elif kind == "sign" and re.fullmatch(r"\d?[<>]{1,2}", text):
            redirect = text
        elif kind == "sign" and "<" not in text and not re.fullmatch(r"\d?>{1,2}&\d", text):
            yield [each for each in pipeline if each.words or each.targets]
            pipeline = [_Command()]
    yield [each for each in pipeline if each.words or each.targets]


def _redirected(command: _Command, sign: str, target: str) -> None:
    if "<" in sign:
        return
    if target not in _NOWHERE:
        command.targets.append(target)
    command.hidden = command.hidden or sign[0] in ">1"


class _Line:
    """What a line was found to do so far, and in which folder it is."""

    def __init__(self, line: str, folder: str, depth: int) -> None:
        self._line, self._folder, self._depth = line, folder, depth
        self._found: list[Aspect] = []
        self._says = 0

    def aspects(self) -> list[Aspect]:
        """Returns what the line does; what it says is its own where it is not of one command."""
        if self._says == 1:
            return self._found
        kept = [replace(each, shows=False) for each in self._found if each.kind == "write"]
        return [*kept, anything_else(self._line, repeatable=False)]

    def take(self, pipeline: Sequence[_Command]) -> None:
        """Adds what a pipeline does."""
        if not pipeline:
            return
        for command in pipeline:
            self._found += [self._changed(target) for target in command.targets]
        parts = [[_bare(word) for word in unwrapped(command.words)] for command in pipeline]
        parts = [part for part in parts if part]
        if not parts:
            return
        if len(parts) == 1 and self._alone(parts[0]):
            return
        if all(shows(_program(part), part[1:]) for part in parts):
            if not pipeline[-1].hidden and not all(_program(part) in SILENT for part in parts):
                self._says += 1
                self._found.append(self._shown(parts))
            return
        for part in parts:
            self._act(part)

    def _alone(self, words: list[str]) -> bool:
        """Takes what is no part of a pipeline, if it is such: a change of the folder, or a shell within the shell."""
        program = _program(words)
        if program in {"cd", "pushd", "popd"}:
            to = operands(words[1:])
            self._found.append(entering())
            self._folder = tidy(to[0], self._folder) if program == "cd" and to and is_plain(to[0]) else "../unknown"
            return True
        if program in {"bash", "sh", "zsh"} and len(words) == 3 and re.fullmatch(r"-[a-z]*c", words[1]):  # noqa: PLR2004
            inner = aspects_of_line(words[2], self._folder, self._depth + 1) if self._depth < DEEPEST else []
            self._found += inner or _of_anything(self._line)
            self._says += 1 if inner else 0
            return True
        return False

    def _act(self, words: list[str]) -> None:
        """Takes a command that may change something."""
        program = _program(words)
        if shows(program, words[1:]):
            return
        changed = changed_by(program, words[1:])
        if changed is None:
            self._says += 1
            self._found.append(changing("", query=self._line, shows=True))
            return
        if program == "tee":
            self._says += 1
        self._found += [self._changed(path) for path in changed]

    def _changed(self, path: str) -> Aspect:
        if path in _NOWHERE:
            return changing("/dev/null")
        return changing(tidy(path, self._folder), query=self._line) if self._is_known(path) else changing("")

    def _is_known(self, path: str) -> bool:
        return is_plain(path) and (path.startswith("/") or not self._folder.startswith(".."))

    def _shown(self, parts: list[list[str]]) -> Aspect:
        """Returns what a pipeline that changes nothing shows."""
        first, rest = parts[0], parts[1:]
        steady = all(is_steady(_program(part)) for part in parts) and not any("$" in word for p in parts for word in p)
        read = self._read(first, rest)
        if read is not None:
            return self._in_folder(read)
        if not steady:
            return anything_else(self._line, repeatable=False)
        told = " | ".join(_canonical(part) for part in parts)
        asked = exactly(f"shell {self._folder} {told}")
        program = _program(first)
        if program in SEARCHERS or first[:2] == ["git", "grep"]:
            return self._in_folder(replace(searching(self._line, asked, self._scopes(first)), asked=asked))
        return self._in_folder(replace(anything_else(self._line, repeatable=True), asked=asked))

    def _in_folder(self, aspect: Aspect) -> Aspect:
        """Returns what is shown as depending on the shell's folder, unless it names its place from the root on."""
        keys, marks = aspect.place.keys, aspect.place.marks
        if keys and not any(key.startswith("has ") for key in keys):
            return aspect
        if not keys and self._folder.startswith("/"):
            return aspect
        if self._folder.startswith(".."):
            return replace(aspect, repeatable=False)
        return replace(aspect, place=Place(keys, marks | {SHELL_FOLDER}))

    def _read(self, first: list[str], rest: list[list[str]]) -> Aspect | None:
        """Returns the reading of one file, or of a part of it, if that is all that is done."""
        found = _file_and_lines(first)
        if found is None or not self._is_known(found[0]) or len(rest) > 1:
            return None
        path, lines = found
        if rest:
            head = _file_and_lines([*rest[0], path]) if lines is None and _program(rest[0]) == "head" else None
            if head is None:
                return None
            lines = head[1]
        return reading(tidy(path, self._folder), lines)

    def _scopes(self, words: list[str]) -> list[str]:
        """Returns the files and folders that a search looks into; an empty one is all there is."""
        program = _program(words)
        if program == "git" or any("$" in word for word in words):
            return []
        if program == "find":
            ends = (at for at, word in enumerate(words) if at and word.startswith(("-", "(", "!")))
            given = words[1 : next(ends, len(words))]
        else:
            given = _operands(words[1:])
            listing = program in {"ls", "tree"} or any(map(_PATTERN_FLAGS.fullmatch, words[1:]))
            given = given if listing else given[1:]
        if not all(self._is_known(path) for path in given):
            return []
        return [tidy(path, self._folder) for path in given] or [self._folder]


def _bare(word: str) -> str:
    """Returns a word without its quotes; a flag without those within."""
    plain = bare(word)
    return plain.replace("'", "").replace('"', "") if plain.startswith("-") else plain


def _program(words: Sequence[str]) -> str:
    return words[0].rsplit("/", 1)[-1]


def _operands(rest: Sequence[str]) -> list[str]:
    """Returns the words that are neither flags nor their values."""
    found, value = [], False
    for word in rest:
        if value:
            value = False
        elif _TAKES_VALUE.fullmatch(word):
            value = True
        elif not word.startswith("-") or word == "-":
            found.append(word)
    return found


def _canonical(words: Sequence[str]) -> str:
    """Returns a command as it is compared: flags that take nothing in front, each by itself, in their order."""
    program = _program(words)
    if program not in {"grep", "egrep", "fgrep", "rg", "ls"}:
        return repr([program, *(_same_path(word) for word in words[1:])])
    flags: set[str] = set()
    others = []
    for word in words[1:]:
        if _PLAIN_FLAGS.fullmatch(word):
            flags |= set(word[1:])
        elif not _SAYS_NOTHING_NEW.fullmatch(word):
            others.append(_same_path(word))
    flags -= set("nH") if "l" not in flags and "c" not in flags and program != "ls" else set()
    return repr([program, "".join(sorted(flags)), *others])


def _same_path(word: str) -> str:
    return word.removeprefix("./").rstrip("/") or "." if len(word) > 1 and "\\" not in word else word


def _file_and_lines(words: Sequence[str]) -> tuple[str, Lines | None] | None:
    """Returns the one file that a command shows, and which lines of it; None: all of them."""
    program, rest = _program(words), list(words[1:])
    if program == "head":
        return _head(rest)
    if program == "sed":
        given = operands(rest)
        found = _SED_LINES.fullmatch(given[0]) if len(given) == 2 and "-n" in rest and len(rest) == 3 else None  # noqa: PLR2004
        if found is None:
            return None
        first = int(found[1])
        last = first if found[2] is None else MOST_LINES if found[2] == "$" else int(found[2])
        return given[1], (first, last)
    given = operands(rest)
    plain = all(re.fullmatch(r"-[nbAeEtTvsN]+|--number", word) for word in rest if word not in given)
    return (given[0], None) if program in READERS and len(given) == 1 and plain and given[0] != "-" else None


def _head(rest: list[str]) -> tuple[str, Lines | None] | None:
    count, files = 10, []
    waiting = False
    for word in rest:
        number = re.fullmatch(r"(?:-n|-|--lines=)(\d{1,9})", word)
        if (waiting and word.isdigit()) or number:
            count, waiting = int(number[1] if number else word), False
        elif word == "-n":
            waiting = True
        elif word.startswith("-") or waiting:
            return None
        else:
            files.append(word)
    return (files[0], (1, max(1, count))) if len(files) == 1 else None
