"""Checks whether a text that a pattern found is a secret: a random key and no word, a valid card or phone number.

Each check returns whether bytes ``start`` to ``end`` of the text ``data`` are a value of its kind.
"""

from collections.abc import Callable
from contextlib import suppress

import phonenumbers
from stdnum import iban

from retrieval.patterns import byte_patterns, patterns
from writer.privacy import numbers
from writer.privacy.patterns import ARGUMENT, CALLED, KEYED, PROVIDER_TOKEN, SAID, SET

SHORTEST_KEY, LONG_KEY = 8, 20  # a long key may do without a digit
SHORTEST_QUOTED, SHORTEST_BARE, SHORTEST_CHOSEN = 3, 4, 5  # a password's
FEWEST_LETTERS = 5  # of the sixteen last of a token

_FORMS = patterns("writer.privacy", "checks")
_BYTES = byte_patterns("writer.privacy", "checks")
PATH = _BYTES["path"]
QUOTES = {b'"', b"'"}


def is_real(data: bytes, start: int, end: int) -> bool:
    """Returns whether bytes ``start`` to ``end`` of a text are a real value, and no placeholder like "<password>"."""
    return not _BYTES["stands_for_a_value"].fullmatch(data, start, end)


def _is_random(data: bytes, start: int, end: int) -> bool:
    """Returns whether the bytes look like a key: long enough, and no sentence, word or plain number."""
    value = data[start:end]
    if len(value) < SHORTEST_KEY or len(value.split()) != 1 or not is_real(data, start, end):
        return False
    return bool(_BYTES["digit"].search(value) and _BYTES["letter"].search(value)) or (
        len(value) >= LONG_KEY and _is_mixed(value) and not _BYTES["dotted_name"].fullmatch(value)
    )


def _is_mixed(value: bytes) -> bool:
    return not (value.islower() or value.isupper() or value.istitle())


def _is_password(data: bytes, start: int, end: int) -> bool:
    """Returns whether the bytes are a password, and no word of prose or code.

    In quotes or directly behind `=`, a plain word counts as a password as well.
    """
    value, before = data[start:end], data[start - 1 : start]
    if PATH.fullmatch(value) or not is_real(data, start, end):
        return False
    if before in QUOTES:
        return len(value) >= SHORTEST_QUOTED
    if len(value) < SHORTEST_BARE or _BYTES["dotted_name"].fullmatch(value.rstrip(b".:!?")):
        return False
    return before in {b"=", b">"} or not value.rstrip(b".:!?").replace(b"_", b"").isalpha()


def _is_argument(data: bytes, start: int, end: int) -> bool:
    """Returns whether the bytes are a value, where only a password can stand, and no variable or next option."""
    value = data[start:end]
    if len(value) < SHORTEST_QUOTED or PATH.fullmatch(value) or _BYTES["no_argument"].fullmatch(value):
        return False
    return is_real(data, start, end) and not _BYTES["dotted_name"].fullmatch(value)


def _is_passed(data: bytes, start: int, end: int) -> bool:
    """Returns whether the bytes, an argument of a function named after a secret, are a password and not a word."""
    return _is_argument(data, start, end) and not data[start:end].isalpha() and len(data[start:end].split()) == 1


def _looks_chosen(data: bytes, start: int, end: int) -> bool:
    """Returns whether the bytes look like a chosen password: letters with digits or signs, no word, name or date."""
    value = data[start:end].rstrip(b".,;:!?)\"'")
    if len(value) < SHORTEST_CHOSEN or len(value.split()) != 1 or not _is_argument(data, start, start + len(value)):
        return False
    return bool(_BYTES["letter"].search(value) and _BYTES["digit_or_sign"].search(value)) and not _BYTES[
        "technical"
    ].fullmatch(value)


def _is_set(data: bytes, start: int, end: int) -> bool:
    """Returns whether the bytes, the value of a setting, are a key or a chosen password, and no checksum."""
    value = data[start:end]
    return not _BYTES["sum"].fullmatch(value) and (_is_random(data, start, end) or _looks_chosen(data, start, end))


def _is_key(data: bytes, start: int, end: int) -> bool:
    """Returns whether the bytes, under a name ending in "key", are a secret key: mixed letters and digits, no path."""
    value = data[start:end]
    mixed = _BYTES["digit"].search(value) and value != value.lower() and value != value.upper()
    return bool(mixed) and (b"/" not in value or value.endswith(b"="))


def _is_form(data: bytes, start: int, end: int) -> bool:
    """Returns whether a provider's token has enough different letters, in contrast to an example in documentation."""
    value = data[start:end]
    return len(set(value[-16:])) >= FEWEST_LETTERS and bool(_BYTES["digit"].search(value) or _is_mixed(value))


def _is_phone(data: bytes, start: int, end: int) -> bool:
    """Returns whether the phone number exists; one in national form is tried as North American, Italian or Mexican."""
    for number in _readings(data, start, end):
        for region in ("US",) if number.startswith("+") else ("US", "IT", "MX"):
            with suppress(phonenumbers.NumberParseException):
                if phonenumbers.is_valid_number(phonenumbers.parse(number, region)):
                    return True
    return False


def _readings(data: bytes, start: int, end: int) -> list[str]:
    """Returns the readings of a digit string: all of it, and without its last one or two groups, which may follow by chance."""
    whole = data[start:end].decode()
    shorter = _FORMS["last_group"].sub("", whole)
    return list(dict.fromkeys([whole, shorter, _FORMS["last_group"].sub("", shorter)]))


Check = Callable[[bytes, int, int], bool]


def _has_form(name: str) -> Check:
    return lambda data, start, end: _BYTES[name].fullmatch(data, start, end) is not None


CHECKS: dict[str, Check] = {
    "authorization": lambda data, start, end: (
        _is_random(data, start, end) or (is_real(data, start, end) and _is_mixed(data[start:end]))
    ),
    "iban": lambda data, start, end: any(map(iban.is_valid, _readings(data, start, end))),
    "openai-key": _is_random,
    "password": _is_password,
    "card-code": _has_form("code"),
    "card-code/key": _has_form("code"),
    "payment-card": numbers.is_card,
    "payment-card/key": numbers.is_named_card,
    "phone": _is_phone,
    "phone/abroad": numbers.is_from_abroad,
    "phone/before": numbers.is_near_phone,
    "phone/field": numbers.is_named_phone,
    "phone/key": numbers.is_named_phone,
    "phone/national": numbers.is_national,
    "phone/near": numbers.is_near_phone,
    "token": lambda *place: _is_random(*place) and not _BYTES["no_key"].fullmatch(*place),
    "pin": _has_form("pin"),
    "pin/key": _has_form("pin"),
    "ssn": _has_form("ssn"),
    "ssn/key": _has_form("ssn"),
    PROVIDER_TOKEN: _is_form,
    ARGUMENT: _is_argument,
    CALLED: _is_passed,
    SAID: _looks_chosen,
    SET: _is_set,
    KEYED: _is_key,
    "token/several/key": _is_set,
    "password/weak/key": _looks_chosen,
}
"""Checks by kind of secret, or by the part of a kind before its last slash; `is_real` checks all other kinds."""


def check_of(kind: str) -> Check:
    """Returns the function that checks texts found by a pattern of this kind."""
    return CHECKS.get(kind) or CHECKS.get(kind.rpartition("/")[0]) or is_real
