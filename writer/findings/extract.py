"""Extraction of findings from a finished step: a file's exports, a search's number of matches, an answer's text."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import re2

from retrieval.sections.quoting import visible
from writer.analysis.error_output import error_in
from writer.analysis.run_counts import failed_by_status
from writer.findings.aspects import MOST_LINES, Aspect, changing
from writer.findings.calls import LISTS_FOLDERS, aspects_of
from writer.findings.exports import exports

FACT_CHARS = 200
"""Maximum characters of an output in the summary of a call that is no read, search or question."""
ANSWER_CHARS = 2_000
SAMPLES = 5
LOOKED_AT = 200_000
"""Maximum characters of a search tool's output that are searched for paths."""
MOST_PARTS = 20
"""Maximum findings of one step; a step with more counts as one that may have changed any file."""
_ONE_LINE = 300
_NUMBERED = re.compile(r" {0,6}(\d{1,7})(?:\t|→|: ?| ?\| ?)(.*)")
_PATH_LINE = re2.compile(
    r"(?:\./)?((?:[\w@.+~-]*/)*[\w@.+~-]+)[:-]\d+(?:[:-]|$)|((?:[\w@.+~-]*/)*[\w@.+~-]*\.?[\w@+~-]+/?)$"
)
"""Lines that begin with a path and a line number, or that are a path."""
_NAMED_PATH = ("path", "file", "file_path", "filename", "uri", "name")
_LISTS = ("matches", "results", "files", "items", "hits", "documents", "paths", "content", "data")
_COUNTS = ("count", "total", "num_matches", "total_matches", "totalMatches", "numFiles", "num_results", "total_count")
_ANSWERS = ("answer", "response", "result", "text", "content", "output", "summary")
_NOTHING = re.compile(
    r"(?i)^\W*(?:no (?:matches|results?|files?|such)\b.{0,80}|0 (?:matches|results?|files?)\b.{0,80})$"
)
_COUNTED = re.compile(
    r"(?i)\W*(?:found|showing|total:?|listing)?\s*(\d[\d,]*)\s+(?:\w+ ){0,2}?"
    r"(files?|match(?:es)?|results?|items?|hits?|entry|entries|occurrences?|documents?|lines?|references?)"
    r"(?:\(e?s\))?(?=[\s:)]|\W*$)[^:]{0,120}(?::\s*(.*))?"
)
"""A line that states the number of results, before or after the results; a list of them may follow on the same line."""
_JSON_FILES = (".json", ".jsonc", ".json5", ".ipynb", ".jsonl")


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding: one aspect of a call, and a summary of the output.

    Attributes:
        success: true if the call succeeded.
        content_hash: sha256 of a file's text in hex; empty for other findings.
        last_line: number of the last line of a file that was read; 0 for other findings.
        details: further values for the summary, such as a file's exports, as JSON.
        redacted: true if secrets were removed from the output, so that it cannot be returned as the call's output.
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
        """Returns the texts of the finding as JSON, which is stored encrypted."""
        aspect = self.aspect
        texts: dict[str, Any] = {"tool": self.tool, "query": aspect.query, "fact": self.fact, **self.details}
        if aspect.path:
            texts["path"] = aspect.path
        if aspect.lines is not None:
            texts["lines"] = [aspect.lines[0], None if aspect.lines[1] == MOST_LINES else aspect.lines[1]]
        if self.redacted:
            texts["redacted"] = True
        elif self.content_hash:
            texts["hash"] = self.content_hash
        return texts


def extract(trace: Mapping[str, Any], kinds: Mapping[str, str], *, redacted: bool = False) -> list[Finding]:
    """Returns the findings of a step, at least one, in the order of the call's effects.

    ``kinds`` are kinds of tools in the profile's settings; ``redacted``: secrets were removed from the output.

    Raises:
        PathTooLong: a path that the call reads, searches or changes is too long.
    """
    aspects = aspects_of(trace["tool"], trace["input"], kinds)
    if len(aspects) > MOST_PARTS:
        aspects = [changing("", query=aspects[-1].query, shows=True)]
    output = _text_of(trace["output"])
    text = "" if output is None else output
    if not isinstance(text, str):
        text = json.dumps(output, ensure_ascii=False, default=str)
    answer = _ToolAnswer(trace["tool"], output, text, failed_by_status(trace["status"]), redacted)
    return [_finding(each, answer) for each in aspects]


def _text_of(output: object) -> object:
    """Returns the text of an output that is a list of text blocks, as MCP's tools answer; other outputs as they are."""
    blocks = output.get("content") if isinstance(output, Mapping) else output
    if not isinstance(blocks, list) or not blocks:
        return output
    texts = [block.get("text") for block in blocks if isinstance(block, Mapping) and block.get("type") == "text"]
    return "\n".join(map(str, texts)) if len(texts) == len(blocks) else output


@dataclass(frozen=True, slots=True)
class _ToolAnswer:
    """The output of a call.

    Attributes:
        failed: true if the status of the call says that it failed.
    """

    tool: str
    output: object
    text: str
    failed: bool
    redacted: bool

    @property
    def value(self) -> object:
        """Returns the tool's output as a JSON value, parsed if the output is JSON in a text.

        A "?" stands for a lone surrogate, as half of a character at the end of a shortened text becomes in JSON.
        """
        output = self.output
        if not isinstance(output, str) or len(output) > LOOKED_AT or output.lstrip()[:1] not in {"[", "{", '"'}:
            return output
        try:
            value: object = json.loads(output)
            if "\\ud" in output or "\\uD" in output:
                value = json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
        except (ValueError, RecursionError):
            return output
        return value

    def finding(self, aspect: Aspect, fact: str, **more: Any) -> Finding:
        """Returns a finding of this call."""
        return Finding(self.tool, aspect, fact, redacted=self.redacted, **{"success": not self.failed, **more})

    def text_under(self, names: Sequence[str]) -> str:
        """Returns the first text in the output's fields of these names; without such a field, the whole output."""
        value = self.value
        if isinstance(value, Mapping):
            return next((value[name] for name in names if isinstance(value.get(name), str)), self.text)
        return value if isinstance(value, str) else self.text


def _finding(aspect: Aspect, answer: _ToolAnswer) -> Finding:
    if not aspect.shows:
        return answer.finding(aspect, f"changed {aspect.path}" if aspect.path else "may have changed files")
    fact = visible(answer.text[: 4 * FACT_CHARS])[:FACT_CHARS]
    if aspect.kind != "write" and (answer.failed or _is_error(aspect, answer.output, answer.text)):
        return answer.finding(aspect, fact or "an error", success=False)
    if aspect.kind == "read":
        return _file_finding(aspect, answer)
    if aspect.kind == "search":
        return _search_finding(aspect, answer)
    if aspect.kind == "answer":
        fact = answer.text_under(_ANSWERS).strip()
        fact = fact if len(fact) <= ANSWER_CHARS else f"{fact[: ANSWER_CHARS - 1]}…"
    return answer.finding(aspect, fact)


def _is_error(aspect: Aspect, output: object, text: str) -> bool:
    """Returns whether the output reports an error; of a file or a search only if it is one short line."""
    short = len(text) <= _ONE_LINE and "\n" not in text.strip()
    if aspect.kind == "search" and _NOTHING.match(text.strip()):
        return False
    return (short or aspect.kind not in {"read", "search"}) and error_in(output) is not None


def _file_finding(aspect: Aspect, answer: _ToolAnswer) -> Finding:
    is_json = aspect.path.casefold().endswith(_JSON_FILES)  # its own fields are no envelope
    text = answer.text if is_json else answer.text_under(("content", "text", "data", "output"))
    text, first = _without_numbers(text)
    lines = text.count("\n") + (not text.endswith("\n") and bool(text))
    begins = aspect.lines[0] if aspect.lines else first
    last = aspect.lines[1] if aspect.lines else begins + lines - 1
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    if "\x00" in text[:8_192]:
        return answer.finding(aspect, f"File is binary: {len(text):,} characters", content_hash=digest, last_line=last)
    groups = exports(aspect.path, text)
    parts = [f"{kind} {', '.join(names)}" for kind, names in groups.items()] + [f"{lines:,} line{'s' * (lines != 1)}"]
    fact = f"File contains: {'; '.join(parts)}" if text.strip() else "File is empty"
    details = {"line_count": lines, **groups}
    return answer.finding(aspect, fact, content_hash=digest, last_line=last, details=details)


def _without_numbers(text: str) -> tuple[str, int]:
    """Returns the text of a file without line numbers that the tool added, and the first of these numbers, or 1.

    Such a tool does not show whether the last line ends with a line break; one is added.
    """
    head = [line for line in text[:4_000].split("\n")[:4] if line]
    rows = [_NUMBERED.fullmatch(line) for line in head[: max(1, len(head) - 1)]]
    if not rows or not all(rows):
        return text, 1
    first = int(rows[0][1])  # type: ignore[index]
    if [int(row[1]) for row in rows if row] != list(range(first, first + len(rows))):
        return text, 1
    lines = [(match[2] if (match := _NUMBERED.fullmatch(line)) else line) for line in text.split("\n")]
    plain = "\n".join(lines)
    return plain if plain.endswith("\n") else f"{plain}\n", first


def _search_finding(aspect: Aspect, answer: _ToolAnswer) -> Finding:
    listing = LISTS_FOLDERS.search(answer.tool.casefold()) is not None
    value = answer.value
    items = value if isinstance(value, list) else None
    if isinstance(value, Mapping):
        items = next((value[name] for name in _LISTS if isinstance(value.get(name), list)), None)
    if items is None:
        text = answer.text_under(("output", "stdout", "content", "text", "result"))
        lines, said = _without_count([line.strip() for line in text[:LOOKED_AT].splitlines() if line.strip()])
        count = len(lines) + text.count("\n", LOOKED_AT) if said is None else said
        paths, whole = list(_paths(lines)), bool(lines) and all(_is_path(line) for line in lines)
    else:
        fields = value if isinstance(value, Mapping) else {}
        count = int(next((fields[name] for name in _COUNTS if isinstance(fields.get(name), int)), len(items)))
        paths = list(_paths(_item_paths(items)))
        whole = len(set(paths)) == len(items)
    samples = list(dict.fromkeys(paths))[:SAMPLES]
    number = f"{count:,} file{'s' * (count != 1)}" if whole or listing else f"{count:,} match{'es' * (count != 1)}"
    details = {"count": count, "samples": samples}
    if listing:
        return answer.finding(aspect, f"{number} found", details={**details, "listing": True})
    return answer.finding(aspect, f"Found {number}" + (f": {', '.join(samples)}" * bool(samples)), details=details)


def _without_count(lines: list[str]) -> tuple[list[str], int | None]:
    """Returns the results without a line that says how many there are, and that number; None if no line says it."""
    if len(lines) == 1 and _NOTHING.match(lines[0]):
        return [], 0
    for place in (0, -1) if lines else ():
        if (counted := _COUNTED.fullmatch(lines[place][:_ONE_LINE])) is not None:
            others = lines[1:] if place == 0 else lines[:-1]
            here = (counted[3] or "").split(", ") if not others else []
            return others + [each for each in here if each], int(counted[1].replace(",", ""))
    return lines, None


def _is_path(line: str) -> bool:
    """Returns whether the whole line is a path that shows itself by a slash or an ending."""
    match = _PATH_LINE.match(line[:500])
    return match is not None and bool(match[2]) and ("/" in line or "." in line)


def _item_paths(items: Sequence[Any]) -> Iterator[str]:
    for item in items:
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            yield from islice((item[name] for name in _NAMED_PATH if isinstance(item.get(name), str)), 1)


def _paths(lines: Sequence[str] | Iterator[str]) -> Iterator[str]:
    for line in lines:
        if (match := _PATH_LINE.match(line[:500])) and (path := match[1] or match[2]):
            yield path[:FACT_CHARS]
