"""Reads entries of knowledge from a file of JSON lines or Markdown; Markdown headings become categories and titles."""

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import orjson
from markdown_it import MarkdownIt

from writer.errors import SecretInName
from writer.knowledge.entry import KnowledgeWritten, reason_of

Entries = Iterator[tuple[int, Mapping[str, object] | None]]
"""Pairs of a line number, 1-based, and the fields of the entry that begins on that line; None: it is no JSON object."""


class LinesRefused(ValueError):
    """Some lines of a file hold no valid entry; the message gives each line's number and the reason, not its text."""


def read_entries(path: Path, agent: str, **defaults: str | None) -> list[KnowledgeWritten]:
    """Returns the redacted entries of a file, in their order; all must be of the agent, whom they need not name.

    ``defaults`` are values of other fields that an entry leaves out; None: the file must have the field.

    Raises:
        LinesRefused: some lines hold no valid entry; then no entry is returned.
    """
    read = _FORMATS.get(path.suffix.lower())
    if read is None:
        raise LinesRefused(f"{path.name} must end with one of {', '.join(_FORMATS)}")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise LinesRefused(f"{path.name} must be text in UTF-8") from error
    usual = {"agent": agent} | {name: value for name, value in defaults.items() if value is not None}
    entries, refused = [], []
    first: dict[bytes, tuple[int, KnowledgeWritten]] = {}
    for number, fields in read(text):
        try:
            if fields is None or fields.get("agent", agent) != agent:
                why = "is no JSON object" if fields is None else "is of another agent"
                raise ValueError(why)  # noqa: TRY301 - the reason why the line is refused
            entry = KnowledgeWritten.model_validate({**usual, **fields})
            entry.check_names()
            begins, same = first.setdefault(entry.shared_hash(), (number, entry))
        except (ValueError, SecretInName) as error:
            refused.append(f"line {number}: {reason_of(error)}")
        else:
            entries.append(entry)
            if same.texts != entry.texts:
                refused.append(f"line {number}: would replace the entry of the same name in line {begins}")
    if refused:
        raise LinesRefused("; ".join(refused))
    if not entries:
        raise LinesRefused(f"{path.name} has no entry")
    return entries


def _of_json_lines(text: str) -> Entries:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            fields = orjson.loads(line)
        except orjson.JSONDecodeError:
            fields = None
        yield number, fields if isinstance(fields, dict) else None


def _of_markdown(text: str) -> Entries:
    """Yields an entry for each heading with a text below it: level 1 is the category, a lower level the title."""
    lines = text.split("\n")  # as Markdown counts them
    headings: list[tuple[int, str, int, int]] = [(0, "", 0, 0)]  # level, 0 before any heading; text; first and end line
    for token, inline in pairwise(MarkdownIt("commonmark").parse(text)):
        if token.type == "heading_open" and token.map is not None and token.level == 0:
            headings.append((int(token.tag[1:]), inline.content, token.map[0], token.map[1]))
    ends = [start for _, _, start, _ in headings[1:]] + [len(lines)]
    category: str | None = None
    title: str | None = None
    for (level, heading, _, start), end in zip(headings, ends, strict=True):
        body = "\n".join(lines[start:end]).strip()
        if level == 1:
            category, title = heading, None
        elif level:
            title = heading
        if body:
            names = {"category": category, "title": title}
            yield max(start, 1), {name: value for name, value in names.items() if value} | {"text": body}


_FORMATS: Mapping[str, Callable[[str], Entries]] = {".jsonl": _of_json_lines, ".md": _of_markdown}
"""Functions that read the entries of a file, by the suffix of the file's name."""
