"""The checks: a find is taken out only if it is what its pattern takes it for."""

import pytest

from writer.privacy.checks import CHECKS, is_real


@pytest.mark.parametrize("text", [b"${TOKEN}", b"%s", b"<key>", b"null", b"****", b"[REDACTED:token]"])
def test_what_stands_for_a_value_is_none(text: bytes):
    assert not is_real(text, 0, len(text))


@pytest.mark.parametrize(
    ("kind", "real", "other"),
    [
        ("payment-card", b"4111 1111 1111 1111", b"4111 1111 1111 1112"),
        ("iban", b"DE89370400440532013000", b"DE89370400440532013001"),
        ("phone", b"+1 212 555 2368", b"+1 102 056 1111"),
        ("token", b"a1b2c3d4", b"description"),
        ("password", b"hunter2", b"required"),
    ],
)
def test_a_check_tells_the_real_one_from_what_looks_like_it(kind: str, real: bytes, other: bytes):
    assert [CHECKS[kind](text, 0, len(text)) for text in (real, other)] == [True, False]
