"""What a body holds is counted exactly enough in its bytes: signs inside texts are no values."""

import json
from typing import Any

import pytest

from app.edge.intake.body import MAX_DEPTH, MAX_FIELDS, MAX_VALUES, check_counts
from app.edge.intake.errors import BodyTooComplex


def deep(levels: int) -> bytes:
    return b'{"a":[' * (levels // 2) + b"[" * (levels % 2) + b"]" * (levels % 2) + b"]}" * (levels // 2)


FITS: dict[str, Any] = {
    "nothing": b"",
    "as many values as there may be": b"[" + b"0," * (MAX_VALUES - 2) + b"0]",
    "as many fields as there may be": json.dumps({str(n): n for n in range(MAX_FIELDS)}).encode(),
    "as deep as it may be": deep(MAX_DEPTH),
    "two lists, each as deep as may be": b"[" + deep(MAX_DEPTH - 1) + b"," + deep(MAX_DEPTH - 1) + b"]",
    "a text of signs": json.dumps("[{:,}]" * MAX_VALUES).encode(),
    "texts of signs, quotes and backslashes": json.dumps(['"[\\"{', '\\\\",:[[', "\\"] * 20_000).encode(),
    "a text without end": b'"' + b"[" * 2 * MAX_VALUES,
    "a text that ends within an escape": b'"' + b'\\"' * MAX_VALUES + b"\\",
}

TOO_MUCH: dict[str, Any] = {
    "too many values": b"[" + b"0," * (MAX_VALUES - 1) + b"0]",
    "too many empty lists": b"[" + b"[]," * MAX_VALUES + b"[]]",
    "too many texts": json.dumps(["x"] * (MAX_VALUES + 1)).encode(),
    "too many fields": json.dumps({str(n): n for n in range(MAX_FIELDS + 1)}).encode(),
    "too deep": deep(MAX_DEPTH + 1),
    "too deep, behind texts that look like an end": b'["]"' + b',["]"' * MAX_DEPTH + b"]" * (MAX_DEPTH + 1),
    "brackets that never close": b"[" * 4_000_000,
    "objects that never close": b'{"":' * 1_000_000,
}


@pytest.mark.parametrize("name", FITS)
def test_what_fits_is_let_through(name: str):
    check_counts(FITS[name])


@pytest.mark.parametrize("name", TOO_MUCH)
def test_what_holds_too_much_is_refused(name: str):
    with pytest.raises(BodyTooComplex, match="200,000 values"):
        check_counts(TOO_MUCH[name])
