"""Whether a find is what its pattern takes it for: a key and no word, a card number that adds up, a real phone number.

Each check looks at bytes ``start`` to ``end`` of the text.
"""

import re

import phonenumbers
from stdnum import iban, luhn

SHORTEST_KEY, LONG_KEY = 8, 20  # a long key may do without a digit
SHORTEST_QUOTED, SHORTEST_BARE = 3, 4  # a password's

_STANDS_FOR_A_VALUE = re.compile(
    rb"\$\d+|\$[A-Z_][A-Z0-9_]*|\$?\{.*\}|<.*>|%\(?\w*\)?s?|:[a-z_]+|[*.?xX]+|(?i:null|none|nil|true|false|undefined)"
    rb"|\[REDACTED:[a-z-]+\]"
)
PATH = re.compile(rb"(?:~|\.{1,2})?/[\w./-]*")  # PWD=/srv/app
_DOTTED_NAME = re.compile(rb"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")  # ON u.password=t.password
_LAST_GROUP = re.compile(r"[ .()/-]+\w+$")
_DIGIT, _LETTER = re.compile(rb"\d"), re.compile(rb"[a-zA-Z]")
QUOTES = {b'"', b"'"}


def is_real(data: bytes, start: int, end: int) -> bool:
    """Whether it is a value, and not a placeholder for one."""
    return not _STANDS_FOR_A_VALUE.fullmatch(data, start, end)


def _is_random(data: bytes, start: int, end: int) -> bool:
    """Whether it looks like a key: long enough, no sentence, no word, no plain number."""
    value = data[start:end]
    if len(value) < SHORTEST_KEY or len(value.split()) != 1 or not is_real(data, start, end):
        return False
    return bool(_DIGIT.search(value) and _LETTER.search(value)) or (
        len(value) >= LONG_KEY and _is_mixed(value) and not _DOTTED_NAME.fullmatch(value)
    )


def _is_credential(data: bytes, start: int, end: int) -> bool:
    return _is_random(data, start, end) or (is_real(data, start, end) and _is_mixed(data[start:end]))


def _is_mixed(value: bytes) -> bool:
    return not (value.islower() or value.isupper() or value.istitle())


def _is_password(data: bytes, start: int, end: int) -> bool:
    """Whether it is a password, and no word of prose or code; quoted or right behind `=` a plain word is one, too."""
    value, before = data[start:end], data[start - 1 : start]
    if PATH.fullmatch(value) or not is_real(data, start, end):
        return False
    if before in QUOTES:
        return len(value) >= SHORTEST_QUOTED
    if len(value) < SHORTEST_BARE or _DOTTED_NAME.fullmatch(value):
        return False
    return before in {b"=", b">"} or not value.rstrip(b".:!?").replace(b"_", b"").isalpha()


def _is_card(data: bytes, start: int, end: int) -> bool:
    return bool(luhn.is_valid(data[start:end].translate(None, b" -").decode()))


def _is_iban(data: bytes, start: int, end: int) -> bool:
    return any(map(iban.is_valid, _readings(data, start, end)))


def _is_phone(data: bytes, start: int, end: int) -> bool:
    """Whether the number exists; one in national form is tried as North American."""
    return any(map(_exists, _readings(data, start, end)))


def _exists(number: str) -> bool:
    try:
        return bool(phonenumbers.is_valid_number(phonenumbers.parse(number, "US")))
    except phonenumbers.NumberParseException:
        return False


def _readings(data: bytes, start: int, end: int) -> list[str]:
    """The candidate, and what is left without its last group and its last two, which may be another number's."""
    whole = data[start:end].decode()
    shorter = _LAST_GROUP.sub("", whole)
    return list(dict.fromkeys([whole, shorter, _LAST_GROUP.sub("", shorter)]))


CHECKS = {
    "authorization": _is_credential,
    "iban": _is_iban,
    "openai-key": _is_random,
    "password": _is_password,
    "payment-card": _is_card,
    "phone": _is_phone,
    "token": _is_random,
}
"""By kind; a find of any other kind is real unless it stands for a value, see ``is_real``."""
