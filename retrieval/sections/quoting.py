"""Quotes stored text for a prompt: a JSON string in one line that cannot pass for the prompt's own words.

The text of a task, a step or a tool's name comes from whoever ran an agent, and may have been written to mislead the
next agent that reads it. Inside the quotes it stays data: it holds no line break, no invisible character, no quote of
its own, and no sequence that a chat template or a lenient parser takes for a tag. JSON's escapes lose no visible
character. White space is told as single spaces, except in the steps of a list, which may hold code: there JSON's
escapes keep line breaks and indents.
"""

import re
import unicodedata
from collections.abc import Iterable

import orjson

_SPACES = {"Zl", "Zp", "Zs", "Cc"}
_INVISIBLE = {"Cf", "Co", "Cs", "Cn"}
"""Format characters (zero-width, bidirectional, tags), private use, lone surrogates, unassigned."""
_VARIATION_SELECTORS = re.compile(
    "[\ufe00-\ufe0f\U000e0100-\U000e01ef\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0]"
)
"""Marks that change no letter, and fillers: text can be hidden in a run of them."""


class _Visible(dict[int, str]):
    """Replacement of each character, by its code: itself, a space or nothing; those of common characters are cached."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        category = unicodedata.category(char)
        hidden = category in _INVISIBLE or _VARIATION_SELECTORS.match(char)
        shown = " " if category in _SPACES else "" if hidden else char
        if code <= _COMMON:
            self[code] = shown
        return shown


_COMMON = 0xFFFF
"""Code of the last character whose replacement is cached, so that a stranger's text cannot fill the memory."""
_VISIBLE, _LAID_OUT = _Visible(), _Visible({ord(char): char for char in "\t\n"})

PLACEHOLDERS = (
    "boolean", "branch", "date", "email", "empty text", "host", "id", "identifier", "key", "module", "name", "null",
    "number", "number as text", "object", "path", "redacted", "secret", "string", "text", "url", "value", "word",
)  # fmt: skip
"""Placeholders that rules write in angle brackets in place of a value; no parser takes these, or `<=`, for a tag."""
_TAG = rf"<(?!=|(?:{'|'.join(PLACEHOLDERS)}|list of \d+)>)"
_OPENING = re.compile(
    _TAG + r"|[\uff1c\ufe64\u2039\u27e8\u3008]|\[(?=\s*/?\s*[A-Z_]{3,}\s*\])|`(?=``)|(?<=``)`|(?<=`)`(?=`)"
)
"""Beginning of a tag (``<|im_start|>``, ``</casebank_memory>``, ``[INST]``), in any width, or fence of a block."""


_PLAIN = re.compile(r"[ !#-;=-Z\]-_a-~]*")
"""Printable ASCII without quotes, backslashes, backticks and what may begin a tag: as it is, as most texts are."""


def quoted(text: str) -> str:
    """Returns the text as a JSON string of one line; `json.loads` returns the text's visible characters."""
    return '"' + unquoted(text) + '"'


def quoted_list(texts: Iterable[str]) -> str:
    """Returns the texts as a JSON list in one line; line breaks, tabs and spaces within a text are kept, escaped."""
    return "[" + ", ".join(f'"{_escaped(laid_out(text))}"' for text in texts) + "]"


def unquoted(text: str) -> str:
    """Returns the text as `quoted` does, but without the quotes around it."""
    return _escaped(visible(text))


def unescaped(text: str) -> str:
    """Returns the text for a line outside quotes: its visible characters as they are, except openings of tags."""
    return _without_openings(visible(text))


def _escaped(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else _without_openings(orjson.dumps(text).decode()[1:-1])


def _without_openings(text: str) -> str:
    return _OPENING.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def visible(text: str) -> str:
    """Returns the text's visible characters in one line, with single spaces between words."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    return " ".join(text.translate(_VISIBLE).split())


def laid_out(text: str) -> str:
    """Returns the text's visible characters with the line breaks, tabs and spaces between its words."""
    return text.replace("\r\n", "\n").translate(_LAID_OUT).strip()
