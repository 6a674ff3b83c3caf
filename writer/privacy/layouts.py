"""Finds secrets by their place: in a column or below a line with a name for secrets, in a list, in an INSERT."""

from collections.abc import Iterator

import re2

from retrieval.patterns import byte_patterns
from writer.privacy.patterns import ANY_NAME, ARGUMENT, PASSWORDS, SET, SUFFIX, TOKENS, WEAK

_ANY = re2.compile(rf"(?i)(?:{ANY_NAME}|{WEAK}\b)")
_NAME = re2.compile(rf"(?i)[\w .-]{{0,60}}?(?:{ANY_NAME}|{WEAK}){SUFFIX}")
_BYTES = byte_patterns("writer.privacy", "layouts")
_OPENING = r"""s?\\*["']?\s{0,3}(?::=|=>|[:=])\s{0,3}(?:\w{1,20}\s?)?[\[({]([^\])}]*)[\])}]"""
_LISTS = [(ARGUMENT, re2.compile(f"(?i){PASSWORDS}{_OPENING}")), (SET, re2.compile(f"(?i){TOKENS}{_OPENING}"))]
_VALUES = re2.compile(rf"(?i)\(([^()]*(?:{ANY_NAME})[^()]*)\)\s{{1,9}}VALUES\s{{0,9}}")
_SEPARATORS = (b"|", b"\t", b";", b",")
_AROUND = b" \t\"'`\\"
LONGEST_LINE = 4_000
"""Maximum bytes of a table's line; longer lines are not examined."""
MOST_HEADERS = 2_000
"""Maximum lines of one text with a name for secrets that are examined; tables after them are not found."""

Span = tuple[int, int, str]


def finds(data: bytes) -> Iterator[Span]:
    """Yields the start and end, in bytes, of each value that may be a secret, and the kind for `check_of`."""
    data = data.replace(b"\\n", b" \n").replace(b"\\t", b" \t").replace(b"\r", b" ")  # keeps the places of all bytes
    position = 0
    for _ in range(MOST_HEADERS):
        name = _ANY.search(data, position)
        if not name:
            break
        start, end = _line(data, name.start())
        position = end + 1
        if end - start <= LONGEST_LINE:
            spans, below = _table(data, start, end) or _block(data, start, end) or ([], position)
            yield from spans
            position = max(position, below)
    yield from _inserted(data)
    for kind, regex in _LISTS:
        for each in regex.finditer(data):
            yield from ((*value.span(1), kind) for value in _BYTES["quoted"].finditer(data, *each.span(1)))


def _line(data: bytes, position: int) -> tuple[int, int]:
    """Returns the start and end of the line at the position."""
    end = data.find(b"\n", position)
    return data.rfind(b"\n", 0, position) + 1, len(data) if end < 0 else end


def _table(data: bytes, start: int, end: int) -> tuple[list[Span], int] | None:
    """Returns the values under names for secrets in a table's header, and the table's end; None if it is no header."""
    separator = max(_SEPARATORS, key=lambda char: data.count(char, start, end))
    width = data.count(separator, start, end)
    cells = _cells(data, start, end, separator) if width else []
    columns = [place for place, (_, _, cell) in enumerate(cells) if _NAME.fullmatch(cell)]
    if not columns:
        return None
    if width == 1 and separator == b"|" and columns == [0]:  # psql's expanded form: name | value
        return [(*cells[1][:2], SET)], end + 1
    spans: list[Span] = []
    below = end + 1
    while below < len(data):
        start, end = _line(data, below)
        if end - start > LONGEST_LINE:
            break
        if not _BYTES["rule"].fullmatch(data, start, end):
            if data.count(separator, start, end) != width:
                break
            cells = _cells(data, start, end, separator)
            spans += [(*cells[column][:2], SET) for column in columns]
        below = end + 1
    return spans, below


def _cells(data: bytes, start: int, end: int, separator: bytes) -> list[tuple[int, int, bytes]]:
    """Returns start, end and text of each cell of a line, without the quotes around it."""
    cells = []
    for part in data[start:end].split(separator):
        bare = part.strip(_AROUND)
        first = start + len(part) - len(part.lstrip(_AROUND)) if bare else start
        cells.append((first, first + len(bare), bare))
        start += len(part) + 1
    return cells


def _block(data: bytes, start: int, end: int) -> tuple[list[Span], int] | None:
    """Returns the values on the lines below a YAML key for secrets, and their end; None if it is no such key."""
    head = _BYTES["block"].fullmatch(data, start, end)
    if not head or not _NAME.fullmatch(head[2].strip()):
        return None
    spans: list[Span] = []
    below = end + 1
    while below < len(data):
        start, end = _line(data, below)
        line = data[start:end]
        depth = len(line) - len(line.lstrip(b" \t"))
        if line.strip() and depth <= len(head[1]) and not line.lstrip().startswith(b"- "):
            break
        whole_letters = line[:LONGEST_LINE].decode(errors="ignore").encode()
        if item := _BYTES["item"].fullmatch(data, start, start + len(whole_letters)):
            spans.append((*item.span(2), ARGUMENT if head[3] and len(item[2].split()) == 1 else SET))
        below = end + 1
    return spans, below


def _inserted(data: bytes) -> Iterator[Span]:
    """Yields the quoted values of an INSERT in columns with names for secrets."""
    for names in _VALUES.finditer(data):
        columns = [place for place, name in enumerate(names[1].split(b",")) if _NAME.fullmatch(name.strip(_AROUND))]
        position = names.end()
        while columns and (row := _BYTES["tuple"].match(data, position)):
            position = row.end()
            entries = list(_BYTES["entry"].finditer(data, *row.span(1)))
            for column in columns:
                if column < len(entries) and entries[column][0].strip().startswith(b"'"):
                    inside = entries[column][0].strip(_AROUND)
                    start = data.index(inside, entries[column].start())
                    yield start, start + len(inside), ARGUMENT
