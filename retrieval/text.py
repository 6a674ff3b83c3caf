"""Normalises texts for comparison, whatever their case and white space, and shortens texts."""

import re
import unicodedata

_WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_JOINED = re.compile(r"(?<!\w)\w++(?:[./@]++\w++)++")
_PART = re.compile(r"[^\W\d]\w+")
_LAST_STOP = re.compile(r"(?<=\w)[.。]+$|(?<=[^\W\d_])[!?]+$")


def folded(text: str) -> str:
    """Returns the text in folded case and composed characters of usual width, with single spaces between its words.

    Signs, numbers and the order of the words are kept, so that no two different tasks become equal.
    """
    if not text.isascii():  # not NFKC, which makes 102 of 10²
        text = unicodedata.normalize("NFC", text.translate(_WIDE))
        return " ".join(unicodedata.normalize("NFC", text.casefold()).split())
    return " ".join(text.casefold().split())


def as_repeated(text: str) -> str:
    """Returns the text in a form for recognising repeats: folded, without the mark at the end of the sentence."""
    return _LAST_STOP.sub("", folded(text))


def with_parts(text: str) -> str:
    """Returns the text with the words of each path, address and dotted name behind it.

    Postgres indexes "src/main.py" as one word, which neither "src" nor "main.py" would find.
    """
    return _JOINED.sub(lambda joined: " ".join([joined[0], *_PART.findall(joined[0])]), text)


def shortened(text: str, longest: int) -> str:
    """Returns the text, or its beginning with an ellipsis, in at most ``longest`` characters."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def ends_of(text: str, longest: int) -> str:
    """Returns the text, or its beginning and its end with the number of characters left out between them.

    The text is cut if it has more than ``longest`` characters.
    """
    if len(text) <= longest:
        return text
    mark = f" … [{len(text) - longest} characters left out] … "
    head = longest // 2
    return f"{text[:head]}{mark}{text[len(text) - (longest - head) :]}"


def without_example(text: str) -> str:
    """Returns a procedure's trigger without the concrete example that a hybrid procedure adds to it."""
    return text.partition(" (for example: ")[0]
