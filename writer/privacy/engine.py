"""Finds tokens of about a hundred providers by the engine `betterleaks`, if its wheel is installed.

The engine is written in Go: a call releases Python's lock, takes linear time, keeps no text and opens no connection.
This module removes NULs, which would end the engine's text, and comments that would make it skip a line. It does not
call the engine in a forked child, where its threads are missing. Without the engine, this package uses only its own
rules, and `name` returns "rules".
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from writer.privacy.patterns import PROVIDER_TOKEN

try:
    from betterleaks import scan_string
except ImportError:  # no wheel for this platform
    scan_string = None  # type: ignore[assignment]

PIECE_BYTES, OVERLAP_BYTES = 1 << 13, 1 << 10  # it takes longer than twice as long for twice as much
MOST_FINDS = 2_000
"""Maximum finds in one text, which takes about 0.25 s; the text after them is removed, because it cannot be checked."""

_CONFIGURATION = str(Path(__file__).with_name("engine.toml"))
_IMPORTED_BY = os.getpid()
# It ends a token at white space and quotes; in a list, a tag or an address other characters do.
_END_OF_TOKEN = re.compile(rb"[,<>()\[\]{}&|#!?](?<=[\w+/=~.-]{12}.)")
_ASCII = bytes(byte if 0 < byte < 128 else ord(" ") for byte in range(256))  # noqa: PLR2004 - ASCII ends there
_LINE = re.compile(rb"\n")


def name() -> str:
    """Returns the name of the engine that finds providers' tokens: `betterleaks`, or `rules` if it is not available."""
    return "rules" if scan_string is None or os.getpid() != _IMPORTED_BY else "betterleaks"


def warm_up() -> None:
    """Loads the engine `betterleaks`, which takes 0.125 s and 20 MiB, so that no request waits for it."""
    list(finds(b"nothing"))


def finds(data: bytes) -> Iterator[tuple[int, int, str]]:
    """Yields the start and end, in bytes, and the kind of each provider's token in a text.

    After more than MOST_FINDS, the rest of the text is one find of the kind `unread`.
    """
    if name() == "rules":
        return
    assert scan_string is not None  # noqa: S101 - for the type checker
    # Other bytes than ASCII become spaces one by one, so that a find has the same place in the text.
    plain = _END_OF_TOKEN.sub(b" ", data.translate(_ASCII).replace(b"leaks:allow", b"leaks.allow"))
    count = 0
    for start in range(0, len(plain), PIECE_BYTES):
        piece = plain[start : start + PIECE_BYTES + OVERLAP_BYTES]
        findings = scan_string(piece.decode("ascii"), _CONFIGURATION)
        lines = [0, *(match.end() for match in _LINE.finditer(piece))] if findings else []
        for finding in findings:
            secret = finding.secret.encode()
            first = piece.find(secret, lines[finding.location.start_line - 1] + finding.location.start_column - 1)
            if secret and first >= 0:
                count += 1
                yield start + first, start + first + len(secret), PROVIDER_TOKEN
        if count > MOST_FINDS and start + PIECE_BYTES < len(data):
            yield start + PIECE_BYTES, len(data), "unread"
            return
