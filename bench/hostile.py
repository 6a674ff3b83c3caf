"""Bodies that cost more to take in than to send: what a retain was stalled with, and what might stall it."""

import json
from collections.abc import Iterator
from itertools import count, islice

BYTES = 3_900_000
"""Just under what a request may have."""
_TEXT_CHARS = 500
_MOST_TRACES = 9_999


def costly_runs(size: int = BYTES) -> dict[str, bytes]:
    """Returns the body of a retain for each way to make it cost, each of about ``size`` bytes."""
    return {
        "e-mail addresses": _texts("a@b.co ", size),
        "invalid traces": _run(b'"tool_traces":[' + _many(b'{"a":1,"b":1},', size)[:-1] + b"]"),
        "empty lists": _run(b'"prompt_snapshot":[' + _many(b"[],", size) + b"[]]"),
        "nesting": _run(b'"prompt_snapshot":' + b"[" * (size // 2) + b"]" * (size // 2)),
        "tiny texts": _run(b'"prompt_snapshot":[' + _many(b'"x",', size) + b'""]'),
        "many keys": _run(b'"prompt_snapshot":{' + b"".join(_keys(size)) + b'"":0}'),
        "unknown fields": _run(b"".join(_keys(size)) + b'"":0'),
        "invalid traces, as many as may be": _run(
            b'"tool_traces":[' + b",".join([b'{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1}'] * _MOST_TRACES) + b"]"
        ),
        "numbers that are no telephones": _texts("(555) 555-5555 ", size),
        "numbers that are no cards": _texts("4111-1111-1111-1112 ", size),
        "accounts that are none": _texts("DE00 1234 1234 1234 1234 12 ", size),
        "passwords that are variables": _texts("password=$X pwd:x, ", size),
        "tokens that are words": _texts("token=abc Bearer aaaaaaaaaaaaaaaaa ", size),
        "addresses with a password": _texts("a://b:c@ ", size),
        "keys that begin": _texts("-----BEGIN PRIVATE KEY-----", size),
        "escapes of escapes": _texts("\\u0040\\/\\\\u0040", size),
    }


def _texts(piece: str, size: int) -> bytes:
    """Returns a valid run whose outputs are made of the piece."""
    text = (piece * (_TEXT_CHARS // len(piece) + 1))[:_TEXT_CHARS]
    trace = json.dumps({"tool": "t", "output": text}).encode()
    return _run(b'"tool_traces":[' + b",".join([trace] * min(_MOST_TRACES, size // len(trace))) + b"]")


def _run(rest: bytes) -> bytes:
    return b'{"agent":"a","task":"t","outcome":"success",' + rest + b"}"


def _many(piece: bytes, size: int) -> bytes:
    return piece * (size // len(piece))


def _keys(size: int) -> Iterator[bytes]:
    """Yields names with a number each, no two alike."""
    return (b'"%x":0,' % number for number in islice(count(), size // 10))
