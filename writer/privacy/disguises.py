"""Decodes disguised text: escapes, invisible characters, split strings and encodings; keeps the original places."""

import base64
import binascii
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from retrieval.patterns import patterns

_LOOK_ALIKES = str.maketrans("аеорсухіѕԁ", "aeopcyxisd")  # noqa: RUF001 - Cyrillic on purpose
_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_ENTITIES = {"amp": "&", "apos": "'", "gt": ">", "lt": "<", "quot": '"'}

_FORMS = patterns("writer.privacy", "disguises")
MOST_DISGUISES = 50_000
"""Maximum number of disguises in one text; the text after them is removed, because it cannot be checked."""
MOST_ENCODED_CHARS = 1 << 20
"""Maximum characters of an encoded text that is decoded; a longer text is taken for a file."""
_HEAD = 24


@dataclass(frozen=True, slots=True)
class Revealed:
    """A disguised text in plain form, with the places of its pieces in both forms.

    Attributes:
        here: start of each piece in the plain text.
        there: start of each piece in the disguised text.
        end: number of characters of the disguised text that were read.
    """

    text: str
    here: list[int]
    there: list[int]
    end: int

    def in_disguise(self, start: int, end: int) -> tuple[int, int]:
        """Returns the start and end, in the disguised text, of characters ``start`` to ``end`` of the plain text."""
        return self._place(start), self._place(end - 1, last=True)

    def _place(self, position: int, *, last: bool = False) -> int:
        """Returns the place of a character in the disguised text; `last` asks for the place behind it.

        A character that was decoded from several has the place of the first, or behind the last.
        """
        piece = bisect_right(self.here, position) - 1
        beyond = piece + 1 < len(self.here)
        width = (self.here[piece + 1] if beyond else len(self.text)) - self.here[piece]
        source = (self.there[piece + 1] if beyond else -1) - self.there[piece]
        if beyond and width != source:  # this piece was decoded, as a whole
            return self.there[piece + 1] if last else self.there[piece]
        return self.there[piece] + position - self.here[piece] + last


def revealed(text: str) -> Revealed | None:
    """Returns the text in plain form, without its disguises; None: the text has no disguise."""
    parts: list[str] = []
    here, there, length, done = [0], [0], 0, 0
    for count, match in enumerate(_FORMS["disguised"].finditer(text)):
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
    """Returns the plain characters of a disguise; None for an escaped quote in JSON, which is a delimiter."""
    kind, disguise = str(match.lastgroup), match[str(match.lastgroup)]
    if kind in {"json", "url"}:
        char = chr(int(disguise, 16))
        return None if kind == "json" and char in "\"'\\\x7f" else char
    if kind == "entity":
        number = int("0" + disguise[1:], 0) if disguise[1] == "x" else disguise[1:]
        return _ENTITIES.get(disguise) or chr(int(number))
    if kind == "wide":
        return disguise.translate(_FULL_WIDTH)
    if kind == "letters":
        return "".join(chr(int(code, 16)) for code in _FORMS["codes"].findall(disguise))
    if kind in {"space", "dash"}:
        return " " if kind == "space" else "-"
    return disguise.translate(_LOOK_ALIKES) if kind == "alike" else "/" if kind == "slash" else ""


def encoded(text: str) -> Iterator[tuple[int, int, str]]:
    """Yields the start and end of each text in base64 or hexadecimal digits, and the decoded text."""
    for match in _FORMS["encoded"].finditer(text):
        if match.end() - match.start() <= MOST_ENCODED_CHARS:
            plain = _decoded(str(match.lastgroup), match[0])
            if plain is not None:
                yield match.start(), match.end(), plain


def _decoded(kind: str, digits: str) -> str | None:
    """Returns the decoded text; None if the bytes are no text, which their beginning usually shows."""
    head = _bytes(kind, digits[:_HEAD])
    if head is None or not _FORMS["plain"].fullmatch(head.decode("latin-1")):
        return None
    data = _bytes(kind, digits)
    try:
        plain = data.decode() if data is not None else None
    except UnicodeDecodeError:
        return None
    return plain if plain is not None and _FORMS["plain"].fullmatch(plain) else None


def _bytes(kind: str, digits: str) -> bytes | None:
    try:
        if kind == "hex":
            return bytes.fromhex(digits)
        bare = digits.rstrip("=").translate(str.maketrans("-_", "+/"))
        bare = bare[: len(bare) - (len(bare) % 4 == 1)]
        return base64.b64decode(bare + "=" * (-len(bare) % 4))
    except (ValueError, binascii.Error):
        return None
