"""What a finished step found out: of a file what it offers, of a search how much there is, of an answer its answer."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import re2

from retrieval.sections.quoting import visible
from writer.analysis.call_status import failed_by_status
from writer.analysis.error_output import error_in
from writer.findings.aspects import MOST_LINES, Aspect, changing
from writer.findings.calls import aspects_of
from writer.findings.exports import exports

FACT_CHARS = 200
"""Of whatever is none of the known kinds, that are kept."""
ANSWER_CHARS = 2_000
SAMPLES = 5
LOOKED_AT = 200_000
"""Characters of a search's output that are looked at for paths."""
MOST_PARTS = 20
"""Findings of one step, at most; one that changes more may have changed anything."""
_ONE_LINE = 300
_NUMBERED = re.compile(r" {0,6}(\d{1,7})(?:\t|→|: ?| ?\| ?)(.*)")
_PATH_LINE = re2.compile(
    r"(?:\./)?((?:[\w@.+~-]*/)*[\w@.+~-]+)[:-]\d+(?:[:-]|$)|((?:[\w@.+~-]*/)*[\w@.+~-]*\.?[\w@+~-]+/?)$"
)
"""A line that begins with a path and the number of a line in it, or is a path."""
_NAMED_PATH = ("path", "file", "file_path", "filename", "uri", "name")
_LISTS = ("matches", "results", "files", "items", "hits", "documents", "paths", "content", "data")
_COUNTS = ("count", "total", "num_matches", "total_matches", "totalMatches", "numFiles", "num_results", "total_count")
_ANSWERS = ("answer", "response", "result", "text", "content", "output", "summary")
_NOTHING = re.compile(
    r"(?i)^\W*(?:no (?:matches|results?|files?|such)\b.{0,80}|0 (?:matches|results?|files?)\b.{0,80})$"
)


@dataclass(frozen=True, slots=True)
class Found:
    """A finding: what a call was about, and what came of it.

    Attributes:
        tool: whose call it was.
        fact: in words.
        success: whether the call did what it was for.
        content_hash: of a file, sha256 of its text in hex.
        last_line: of a file, that was read.
        details: what else was read off, as JSON.
        redacted: whether what the call answered was kept without its secrets, and so is not what it answered.
    """

    tool: str
    aspect: Aspect
    fact: str
    success: bool
    content_hash: str = ""
    last_line: int = 0
    details: Mapping[str, Any] = field(default_factory=dict)
    redacted: bool = False

    @property
    def payload(self) -> dict[str, Any]:
        """All of it that is words, as JSON."""
        aspect = self.aspect
        said: dict[str, Any] = {"tool": self.tool, "query": aspect.query, "fact": self.fact, **self.details}
        if aspect.path:
            said["path"] = aspect.path
        if aspect.lines is not None:
            said["lines"] = [aspect.lines[0], None if aspect.lines[1] == MOST_LINES else aspect.lines[1]]
        if self.redacted:
            said["redacted"] = True
        elif self.content_hash:
            said["hash"] = self.content_hash
        return said


def extract(trace: Mapping[str, Any], kinds: Mapping[str, str], *, redacted: bool = False) -> list[Found]:
    """Returns the findings of a step, at least one, in the order in which its call did things.

    Args:
        trace: the tool trace, without secrets.
        kinds: what the profile says of its tools.
        redacted: whether secrets were taken out of its output.

    Raises:
        PathTooLong: a path that it reads, searches or changes is none.
    """
    aspects = aspects_of(trace["tool"], trace["input"], kinds)
    if len(aspects) > MOST_PARTS:
        aspects = [changing("", query=aspects[-1].query, shows=True)]
    output = trace["output"]
    answered = _Answered(trace["tool"], output, _text_of(output), failed_by_status(trace["status"]), redacted)
    return [_found(each, answered) for each in aspects]


@dataclass(frozen=True, slots=True)
class _Answered:
    """What a tool answered, as it is and as a text; whether its status says that it failed; whether it was redacted."""

    tool: str
    output: object
    text: str
    failed: bool
    redacted: bool

    def found(self, aspect: Aspect, fact: str, **more: Any) -> Found:
        """Returns a finding of this call."""
        return Found(self.tool, aspect, fact, redacted=self.redacted, **{"success": not self.failed, **more})


def _found(aspect: Aspect, answered: _Answered) -> Found:
    text = answered.text
    if not aspect.shows:
        return answered.found(aspect, f"changed {aspect.path}" if aspect.path else "may have changed files")
    if aspect.kind == "write":
        return answered.found(aspect, _beginning(text))
    if answered.failed or _is_error(aspect, answered.output, text):
        return answered.found(aspect, _beginning(text) or "an error", success=False)
    if aspect.kind == "read":
        return _of_file(aspect, answered)
    if aspect.kind == "search":
        return _of_search(aspect, answered)
    return answered.found(aspect, _answer(answered) if aspect.kind == "answer" else _beginning(text))


def _is_error(aspect: Aspect, output: object, text: str) -> bool:
    """Returns whether the output says that the call failed: of a file or a search, if that is all that it says."""
    short = len(text) <= _ONE_LINE and "\n" not in text.strip()
    if aspect.kind == "search" and _NOTHING.match(text.strip()):
        return False
    return (short or aspect.kind not in {"read", "search"}) and error_in(output) is not None


def _of_file(aspect: Aspect, answered: _Answered) -> Found:
    text, first = _without_numbers(_content_of(answered))
    lines = text.count("\n") + (not text.endswith("\n") and bool(text))
    begins = aspect.lines[0] if aspect.lines else first
    last = aspect.lines[1] if aspect.lines else begins + lines - 1
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    if "\x00" in text[:8_192]:
        return answered.found(aspect, f"binary, {len(text):,} characters", content_hash=digest, last_line=last)
    offered = exports(aspect.path, text)
    details = {"line_count": lines, **(offered.as_dict() if offered else {})}
    said = _offers(offered.as_dict()) if offered else ""
    fact = f"{lines:,} line{'s' * (lines != 1)}{said}" if text.strip() else "empty"
    return answered.found(aspect, fact, content_hash=digest, last_line=last, details=details)


def _offers(offered: Mapping[str, Sequence[str]]) -> str:
    parts = [f"{kind} {', '.join(names)}" for kind, names in offered.items()]
    return f"; {'; '.join(parts)}" if parts else ""


def _content_of(answered: _Answered) -> str:
    """Returns the text of a file in an answer that may say more than that."""
    return _said(answered, ("content", "text", "data", "output"))


def _said(answered: _Answered, names: Sequence[str]) -> str:
    """Returns the first text that the output has under one of the names, or else all of it."""
    output = answered.output
    if not isinstance(output, Mapping):
        return answered.text
    return next((output[name] for name in names if isinstance(output.get(name), str)), answered.text)


def _without_numbers(text: str) -> tuple[str, int]:
    """Returns the text without the numbers that a tool put before its lines, and the first of them, or else 1.

    Its last line ends as lines of files do, which such a tool does not show.
    """
    head = [line for line in text[:4_000].split("\n")[:4] if line]
    found = [_NUMBERED.fullmatch(line) for line in head[: max(1, len(head) - 1)]]
    if not found or not all(found):
        return text, 1
    first = int(found[0][1])  # type: ignore[index]
    if [int(each[1]) for each in found if each] != list(range(first, first + len(found))):
        return text, 1
    lines = [(match[2] if (match := _NUMBERED.fullmatch(line)) else line) for line in text.split("\n")]
    plain = "\n".join(lines)
    return plain if plain.endswith("\n") else f"{plain}\n", first


def _of_search(aspect: Aspect, answered: _Answered) -> Found:
    output, text = answered.output, answered.text
    items = _items(output)
    if items is None:
        lines = [line.strip() for line in text[:LOOKED_AT].splitlines() if line.strip()]
        lines = [] if len(lines) == 1 and _NOTHING.match(lines[0]) else lines
        count, paths = len(lines), _paths(lines)
        if len(text) > LOOKED_AT:
            count += text.count("\n", LOOKED_AT)
    else:
        count, paths = _counted(output, items), _paths(_item_paths(items))
    samples = _first(paths)
    fact = f"{count:,} match{'es' * (count != 1)}" + (f": {', '.join(samples)}" if samples else "")
    return answered.found(aspect, fact, details={"count": count, "samples": samples})


def _first(paths: Iterator[str]) -> list[str]:
    """Returns the first SAMPLES different paths."""
    found: dict[str, None] = {}
    for path in paths:
        found[path] = None
        if len(found) == SAMPLES:
            break
    return list(found)


def _items(output: object) -> list[Any] | None:
    if isinstance(output, str) and output.lstrip()[:1] in {"[", "{"} and len(output) <= LOOKED_AT:
        try:
            output = json.loads(output)
        except ValueError:
            return None
    if isinstance(output, list):
        return output
    if isinstance(output, Mapping):
        return next((output[name] for name in _LISTS if isinstance(output.get(name), list)), None)
    return None


def _counted(output: object, items: Sequence[Any]) -> int:
    if isinstance(output, Mapping):
        told = (output[name] for name in _COUNTS if isinstance(output.get(name), int))
        return int(next(told, len(items)))
    return len(items)


def _item_paths(items: Sequence[Any]) -> Iterator[str]:
    for item in items:
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            yield from islice((item[name] for name in _NAMED_PATH if isinstance(item.get(name), str)), 1)


def _paths(lines: Sequence[str] | Iterator[str]) -> Iterator[str]:
    for line in lines:
        if (found := _PATH_LINE.match(line[:500])) and (path := found[1] or found[2]):
            yield path[:FACT_CHARS]


def _answer(answered: _Answered) -> str:
    shown = _said(answered, _ANSWERS).strip()
    return shown if len(shown) <= ANSWER_CHARS else f"{shown[: ANSWER_CHARS - 1]}…"


def _text_of(output: object) -> str:
    if output is None:
        return ""
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, default=str)


def _beginning(text: str) -> str:
    return visible(text[: 4 * FACT_CHARS])[:FACT_CHARS]
