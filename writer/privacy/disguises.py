"""What a text says behind escapes, invisible characters, split strings and encodings, and where it stands in the text."""

import base64
import binascii
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

_LOOK_ALIKES = str.maketrans("аеорсухіѕԁ", "aeopcyxisd")  # noqa: RUF001 - Cyrillic on purpose
_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_ENTITIES = {"amp": "&", "apos": "'", "gt": ">", "lt": "<", "quot": '"'}
_CHAR = r"[\w+/=~.-]"

_DISGUISED = re.compile(
    rf"""(?<!\\)\\+u00(?P<json>[2-7][0-9a-fA-F])
    |(?<!\\)\\+(?P<slash>/)
    |%(?P<url>[2-7][0-9a-fA-F])
    |&(?P<entity>amp|apos|gt|lt|quot|\#\d{{2,3}}|\#x[0-9a-fA-F]{{2}});
    |(?P<invisible>[\u00ad\u034f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]+)
    |(?P<wide>[\uff01-\uff5e]+)
    |(?P<alike>(?<=[A-Za-z])[аеорсухіѕԁ]+(?=[A-Za-z]))
    |(?P<split>(?<={_CHAR}{{3}})(?:\\*["'`][ \t]*(?:(?:\+|\.{{1,2}}|&|\|\|)\s{{0,40}}|\\?\n[ \t]{{0,40}})\\*["'`]|\\\n)(?={_CHAR}{{3}}))""",  # noqa: RUF001
    re.VERBOSE,
)
_ENCODED = re.compile(
    r"(?P<hex>(?:[0-9a-f]{2}){12,}|(?:[0-9A-F]{2}){12,})(?![\w+/=-])|(?P<base64>[A-Za-z0-9+/_-]{20,}={0,2})"
)
MOST_DISGUISES = 50_000
"""In one text; what comes after so many is cut, not trusted."""
MOST_ENCODED_CHARS = 1 << 20
"""Of one encoded text; a longer one is a file."""
_HEAD = 24
_PLAIN = re.compile(r"[\t\n\r -~\u00a0-\uffff]*")


@dataclass(frozen=True, slots=True)
class Revealed:
    """A text without its disguises, and for each piece of it where it began, in both."""

    text: str
    here: list[int]
    there: list[int]
    end: int
    """How far the disguised text was read."""

    def in_disguise(self, start: int, end: int) -> tuple[int, int]:
        """Where characters ``start`` to ``end`` of the plain text stand in the disguised one."""
        return self._place(start), self._place(end - 1, last=True)

    def _place(self, position: int, *, last: bool = False) -> int:
        """The place in the disguised text; of a character that was written as several, the first or behind the last."""
        piece = bisect_right(self.here, position) - 1
        beyond = piece + 1 < len(self.here)
        width = (self.here[piece + 1] if beyond else len(self.text)) - self.here[piece]
        source = (self.there[piece + 1] if beyond else -1) - self.there[piece]
        if beyond and width != source:  # this piece was decoded, as a whole
            return self.there[piece + 1] if last else self.there[piece]
        return self.there[piece] + position - self.here[piece] + last


def revealed(text: str) -> Revealed | None:
    """The text without its disguises; None where it has none."""
    parts: list[str] = []
    here, there, length, done = [0], [0], 0, 0
    for count, match in enumerate(_DISGUISED.finditer(text)):
        if count == MOST_DISGUISES:
            return Revealed("".join(parts), here, there, done)
        plain = _plain(match)
        if plain is None:
            continue
        for part, begin in ((text[done : match.start()], match.start()), (plain, match.end())):
            parts.append(part)
            length += len(part)
            here.append(length)
            there.append(begin)
        done = match.end()
    return Revealed("".join([*parts, text[done:]]), here, there, len(text)) if done else None


def _plain(match: re.Match[str]) -> str | None:
    """What the disguise stands for; a quote in JSON stays, for it delimits."""
    kind, found = str(match.lastgroup), match[str(match.lastgroup)]
    if kind in {"json", "url"}:
        char = chr(int(found, 16))
        return None if kind == "json" and char in "\"'\\\x7f" else char
    if kind == "entity":
        return _ENTITIES.get(found) or chr(int("0" + found[1:], 0) if found[1] == "x" else int(found[1:]))
    if kind == "wide":
        return found.translate(_FULL_WIDTH)
    return found.translate(_LOOK_ALIKES) if kind == "alike" else "/" if kind == "slash" else ""


def encoded(text: str) -> Iterator[tuple[int, int, str]]:
    """The start and end of each text in base64 or hexadecimal digits, and what it says."""
    for match in _ENCODED.finditer(text):
        if match.end() - match.start() <= MOST_ENCODED_CHARS:
            says = _decoded(str(match.lastgroup), match[0])
            if says is not None:
                yield match.start(), match.end(), says


def _decoded(kind: str, found: str) -> str | None:
    """What it says; None if that is no text."""
    head = _bytes(kind, found[:_HEAD])
    if head is None or not _PLAIN.fullmatch(head.decode("latin-1")):
        return None
    data = _bytes(kind, found)
    try:
        says = data.decode() if data is not None else None
    except UnicodeDecodeError:
        return None
    return says if says is not None and _PLAIN.fullmatch(says) else None


def _bytes(kind: str, found: str) -> bytes | None:
    try:
        if kind == "hex":
            return bytes.fromhex(found)
        bare = found.rstrip("=").translate(str.maketrans("-_", "+/"))
        bare = bare[: len(bare) - (len(bare) % 4 == 1)]
        return base64.b64decode(bare + "=" * (-len(bare) % 4))
    except (ValueError, binascii.Error):
        return None
