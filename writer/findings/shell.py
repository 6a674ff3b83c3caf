"""Aspects of a command line: the files that it reads, the searches that it makes, and the files that it may change."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from writer.analysis.commands import DEEPEST, LINE_CHARS, Piece, SimpleCommand, bare, pieces, simple_commands, unwrapped
from writer.analysis.program_effects import READERS, SEARCHERS, SILENT, changed_by, is_steady, operands, shows
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
from writer.findings.paths import FilePlace, is_plain, tidy
from writer.findings.queries import exact_key

MOST_PIECES = 400
"""Maximum number of words and signs of a command line; a longer line counts as one that may change any file."""
_RUNS_ANOTHER = re.compile(r"\$\(|`|<\(|>\(")
"""Characters that begin a command inside a command."""
_ENTERS_FOR_ITSELF = {")", "&", "||"}
"""Signs behind commands that may run in a folder of their own, or not at all."""
_NOWHERE = {"/dev/null", "/dev/stdout", "/dev/stderr", "-"}
_PATTERN_FLAGS = re.compile(r"-[a-zA-Z]*[ef]|--(?:regexp|file)(?:=.*)?|--files")
_TAKES_VALUE = re.compile(
    r"-[ABCmeft]|--(?:include|exclude|exclude-dir|glob|type|max-count|context|after-context|before-context|regexp|file)"
)
_PLAIN_FLAGS = re.compile(r"-[nrRHhiwlLcoEFPsvxaIqSzU]+")
_SAYS_NOTHING_NEW = re.compile(r"--colou?r(?:=\w+)?|--no-heading|--line-number|--recursive")
_SED_LINES = re.compile(r"(\d{1,9})(?:,(\d{1,9}|\$))?p;?(?:(\d{1,9})q)?")
_HEAD = re.compile(r"(?:(?:-n\n?|-|--lines=)(\d{1,9})\n)?([^-\n][^\n]*)")
"""Words behind ``head``, each on a line: a number of lines, and one file."""


def aspects_of_line(line: str, folder: str = "", depth: int = 0) -> list[Aspect]:
    """Returns the aspects of a command line, in the order of its commands.

    At most one aspect has the output: an output of several commands belongs to no aspect.

    Args:
        line: the command line.
        folder: the current folder of the shell; empty: unknown, or the folder of the run.
        depth: levels of ``bash -c`` around the line, at most DEEPEST.
    """
    if len(line) > LINE_CHARS or _RUNS_ANOTHER.search(line):
        return _any_change(line)
    some = list(islice(pieces(line), MOST_PIECES + 1))
    # an open quote, or a quote with escapes, may hide further commands
    if len(some) > MOST_PIECES or any(each.kind == "quote" or each.text.startswith(("$'", '$"')) for each in some):
        return _any_change(line)
    if _ENTERS_FOR_ITSELF & {each.text for each in some[:-1]} and any(each.text == "cd" for each in some):
        return _any_change(line)  # what follows runs in the folder before
    analysis = _CommandLine(line, folder, depth)
    for pipeline in _pipelines(some):
        analysis.take(pipeline)
    return analysis.aspects()


def _any_change(line: str) -> list[Aspect]:
    return [changing("", query=line, shows=True)]


def _pipelines(line: Iterable[Piece]) -> Iterator[list[SimpleCommand]]:
    """Yields the pipelines of a line, each as its commands."""
    pipeline: list[SimpleCommand] = []
    for command in simple_commands(line):
        if pipeline and not command.piped:
            yield pipeline
            pipeline = []
        pipeline.append(command)
    yield pipeline


class _CommandLine:
    """The analysis of one command line: its aspects so far, the shell's folder, and the number of outputs."""

    def __init__(self, line: str, folder: str, depth: int) -> None:
        self._line, self._folder, self._depth = line, folder, depth
        self._aspects: list[Aspect] = []
        self._outputs = 0

    def aspects(self) -> list[Aspect]:
        """Returns the aspects of the line; the output of several commands is an aspect of its own."""
        if self._outputs == 1:
            return self._aspects
        kept = [replace(each, shows=False) for each in self._aspects if each.kind == "write"]
        return [*kept, anything_else(self._line, repeatable=False)]

    def take(self, pipeline: Sequence[SimpleCommand]) -> None:
        """Adds the aspects of a pipeline."""
        parts, reading_parts = [], []
        for command in pipeline:
            files = (each for each in (*command.outputs, *command.errors) if each not in _NOWHERE)
            self._aspects += [self._changed(file) for file in files]
            words = [bare(word) for word in unwrapped(command.words)]
            # flags without quotes inside as well
            words = [re.sub("['\"]", "", word) if word.startswith("-") else word for word in words]
            parts += [words] if words else []
            reading_parts += [words + command.inputs] if words else []
        if not parts or (len(parts) == 1 and self._alone(parts[0])):
            return
        if all(shows(_program(part), part[1:]) for part in parts):
            if not pipeline[-1].outputs and not all(_program(part) in SILENT for part in parts):
                self._outputs += 1
                has_text = any(command.document for command in pipeline)
                shown = anything_else(self._line, repeatable=False) if has_text else self._shown(reading_parts)
                self._aspects.append(shown)
            return
        for part in parts:
            program, rest = _program(part), part[1:]
            if shows(program, rest):
                continue  # the other commands may change files
            changed = changed_by(program, rest)
            self._outputs += changed is None or program == "tee"
            self._aspects += _any_change(self._line) if changed is None else [self._changed(path) for path in changed]

    def _alone(self, words: list[str]) -> bool:
        """Adds the aspects of a change of the folder or of a nested shell; returns whether the command is either."""
        program = _program(words)
        if program in {"cd", "pushd", "popd"}:
            to = operands(words[1:])
            self._aspects.append(entering())
            is_named = program == "cd" and to and to[0] != "-" and is_plain(to[0])
            self._folder = tidy(to[0], self._folder) if is_named else "../unknown"
            return True
        if program in {"bash", "sh", "zsh"} and len(words) == 3 and re.fullmatch(r"-[a-z]*c", words[1]):  # noqa: PLR2004
            inner = aspects_of_line(words[2], self._folder, self._depth + 1) if self._depth < DEEPEST else []
            self._aspects += inner or _any_change(self._line)
            self._outputs += 1 if inner else 0
            return True
        return False

    def _changed(self, path: str) -> Aspect:
        if path in _NOWHERE:
            return changing("/dev/null")
        return changing(tidy(path, self._folder), query=self._line) if self._is_known(path) else changing("")

    def _is_known(self, path: str) -> bool:
        return is_plain(path) and (path.startswith("/") or not self._folder.startswith(".."))

    def _shown(self, parts: list[list[str]]) -> Aspect:
        """Returns the aspect of a pipeline that changes no file."""
        first, rest = parts[0], parts[1:]
        steady = all(is_steady(_program(part)) for part in parts) and not any("$" in word for p in parts for word in p)
        read = self._read(first, rest)
        if read is not None:
            return self._in_folder(read)
        if not steady:
            return anything_else(self._line, repeatable=False)
        canonical = " | ".join(_canonical(part) for part in parts)
        query_key = exact_key(f"shell {self._folder} {canonical}")
        program = _program(first)
        if program in SEARCHERS or first[:2] == ["git", "grep"]:
            return self._in_folder(replace(searching(self._line, query_key, self._scopes(first)), query_key=query_key))
        return self._in_folder(replace(anything_else(self._line, repeatable=True), query_key=query_key))

    def _in_folder(self, aspect: Aspect) -> Aspect:
        """Returns the aspect with the mark of the shell's folder, unless all its paths are absolute."""
        keys, marks = aspect.place.keys, aspect.place.marks
        if keys and not any(key.startswith("has ") for key in keys):
            return aspect
        if not keys and self._folder.startswith("/"):
            return aspect
        if self._folder.startswith(".."):
            return replace(aspect, repeatable=False)
        return replace(aspect, place=FilePlace(keys, marks | {SHELL_FOLDER}))

    def _read(self, first: list[str], rest: list[list[str]]) -> Aspect | None:
        """Returns the aspect of reading one file or some of its lines; None for any other pipeline."""
        part = _file_and_lines(first)
        if part is None or not self._is_known(part[0]) or len(rest) > 1:
            return None
        path, lines = part
        if rest:
            head = _file_and_lines([*rest[0], path]) if lines is None and _program(rest[0]) == "head" else None
            if head is None:
                return None
            lines = head[1]
        return reading(tidy(path, self._folder), lines)

    def _scopes(self, words: list[str]) -> list[str]:
        """Returns the files and folders that a search reads; empty if they are unknown."""
        program = _program(words)
        if program == "git" or any("$" in word for word in words):
            return []
        if program == "find":
            ends = (at for at, word in enumerate(words) if at and word.startswith(("-", "(", "!")))
            paths = words[1 : next(ends, len(words))]
        elif program in {"ls", "tree"}:
            paths = operands(words[1:])
        else:
            paths = _operands(words[1:])
            paths = paths if any(map(_PATTERN_FLAGS.fullmatch, words[1:])) else paths[1:]
        if not all(self._is_known(path) for path in paths):
            return []
        return [tidy(path, self._folder) for path in paths] or [self._folder]


def _program(words: Sequence[str]) -> str:
    return words[0].rsplit("/", 1)[-1]


def _operands(rest: Sequence[str]) -> list[str]:
    """Returns the words that are neither flags nor values of flags."""
    names, value = [], False
    for word in rest:
        if value:
            value = False
        elif _TAKES_VALUE.fullmatch(word):
            value = True
        elif not word.startswith("-") or word == "-":
            names.append(word)
    return names


def _canonical(words: Sequence[str]) -> str:
    """Returns a command in the form in which it is compared: flags without values first, split and sorted."""
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
    """Returns the one file that a command prints, and its lines (None for all); None for another command."""
    program, rest = _program(words), words[1:]
    if program == "head":
        match = _HEAD.fullmatch("\n".join(rest))
        return (match[2], (1, max(1, int(match[1] or 10)))) if match else None
    files = operands(rest)
    if program == "sed":
        script = _SED_LINES.fullmatch(files[0]) if len(files) == 2 and "-n" in rest and len(rest) == 3 else None  # noqa: PLR2004
        if script is None:
            return None
        first = int(script[1])
        last = first if script[2] is None else MOST_LINES if script[2] == "$" else int(script[2])
        last = min(last, int(script[3] or last))
        return (files[1], (first, last)) if first <= last else None
    plain = all(re.fullmatch(r"-[nNu]+|--number", word) for word in rest if word not in files)
    return (files[0], None) if program in READERS and len(files) == 1 and plain and files[0] != "-" else None
