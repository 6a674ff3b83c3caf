"""Recognises payment cards and phone numbers by their context, because most long numbers are ids.

Digits are a card's if they stand in groups, alone, under a name for cards, or near a word for cards. Digits are a
national phone number if they are valid in one of the largest countries, and stand in groups as people there write them,
or near a word for phones.
"""

import re
from contextlib import suppress
from functools import cache

import phonenumbers
from stdnum import luhn

from retrieval.patterns import byte_patterns, patterns, word_sets

REGIONS = tuple("US CA GB DE FR IT ES JP KR CN IN BR RU MX AU ID PK NG BD PH EG ET PL TR NL FI GR IL VN".split())
"""Countries whose national phone numbers are recognised: the largest by population or economy, and some more."""
NEAR_BEFORE, NEAR_AFTER = 80, 40
"""Number of bytes before and after a number that are searched for a word that tells its kind."""
NEAR_LINE = 400
"""Number of bytes of a line, on each side of a number, that are searched for other numbers."""
LEAST_CARD, MOST_CARD, LONGEST_CARD = 10**13, 10**16, 24
"""Least card number, the first number above all card numbers, and the maximum characters of a written card number."""
SHORTEST_PHONE = 7
"""Least number of digits of a phone number."""

_FORMS = patterns("writer.privacy", "numbers")
_BYTES = byte_patterns("writer.privacy", "numbers")
_WORDS = word_sets("writer.privacy", "numbers")
TEST_CARDS = _WORDS["test_cards"]
"""Published test numbers of payment providers; they count as cards in any context."""

_KINDS = (
    ("cards_name", "payment-card"),
    ("codes_name", "card-code"),
    ("pins_name", "pin"),
    ("phones_name", "phone"),
    ("ssn_name", "ssn"),
)
"""Kinds of numbers by the patterns of the names of their fields; the first that fits counts."""
_JOINTS = (b"-", b".", b"/", b":")
_WITHOUT_PREFIX = ("BR", "CN", "IN", "IT")
"""Regions with a trunk prefix 0 that mobile numbers, or all current numbers, do not need."""
_OF_LONDON = ("203", "207", "208")
"""First groups in which many write London's numbers, whose area's code is 20."""


def kind_of_name(name: str) -> str:
    """Returns the kind of number, such as a card's, that a field of this name holds; empty: no such kind."""
    return next((kind for form, kind in _KINDS if _FORMS[form].fullmatch(name)), "")


def is_ids_name(name: str) -> bool:
    """Returns whether a field of this name holds ids."""
    return bool(_FORMS["ids_name"].fullmatch(name))


def speaks(name: str) -> bool:
    """Returns whether a field of this name holds a message; a text without a name counts as a message."""
    return not name or name.lower() in _WORDS["speaker_names"]


def may_be_card(value: object) -> bool:
    """Returns whether a value of JSON has as many digits as a payment card."""
    if isinstance(value, str):
        return (
            value[:1].isdigit()
            and len(value) < LONGEST_CARD
            and _BYTES["card"].fullmatch(value.encode("utf-8", "replace")) is not None
        )
    return isinstance(value, int | float) and LEAST_CARD <= value < MOST_CARD


def is_other_number(text: str, name: str) -> bool:
    """Returns true for digits that are another number than a card's: their field is for ids, or holds no messages."""
    if not text.isdigit() or text in TEST_CARDS:
        return False
    return is_ids_name(name) or (may_be_card(text) and not speaks(name))


def tells_of_cards(labels: str) -> bool:
    """Returns whether the names and short texts of a JSON object contain a word for payment cards."""
    return bool(_FORMS["card_word"].search(_FORMS["marker"].sub("", labels)))


def is_card(data: bytes, start: int, end: int) -> bool:
    """Returns whether digits are a payment card's: in groups, alone in the text, or near a word for cards."""
    digits = data[start:end].translate(None, b" .-").decode()
    if not luhn.is_valid(digits):
        return False
    if len(digits) < end - start or digits in TEST_CARDS or not (data[:start].strip() or data[end:].strip()):
        return True
    before, after = _around(data, start, end)
    word = _FORMS["card_word"]
    return not _FORMS["ids_label"].search(before) and bool(word.search(before) or word.search(after))


def is_named_card(data: bytes, start: int, end: int) -> bool:
    """Returns whether data[start:end], the value of a field named for cards, is a payment card's number."""
    if not _BYTES["card"].fullmatch(data, start, end):
        return False
    digits = data[start:end].translate(None, b" -").decode()
    return bool(_FORMS["issuer"].fullmatch(digits)) and bool(luhn.is_valid(digits))


def is_from_abroad(data: bytes, start: int, end: int) -> bool:
    """Returns whether the bytes are a phone number in its form for calls from abroad, after 00 or 011, and no id."""
    written = data[start:end].decode()
    number = re.sub(r"^0(?:0|11)[ .-]?", "+", written)
    return not _FORMS["ids_label"].search(_around(data, start, end)[0]) and _is_international(number)


def is_national(data: bytes, start: int, end: int) -> bool:
    """Returns whether the bytes are a phone number in the groups that people of its country write, and no id."""
    written, follows = data[start:end].decode(), data[end : end + 2]
    before, after = _around(data, start, end)
    if (follows[1:].isdigit() and follows[:1] in _JOINTS) or _FORMS["ids_label"].search(before):
        return False
    groups = _FORMS["group"].findall(written)
    if len(groups) == 1:
        alone = not (data[:start].strip() or data[end:].strip())
        near = alone or _FORMS["phone_word"].search(before) or _FORMS["phone_word"].search(after)
        regions = REGIONS if near else ("CN",) if _FORMS["chinese_mobile"].fullmatch(written) else ()
        return any(_is_valid_in(region, written) for region in regions)
    if follows[:1] == b" " and follows[1:].isdigit() and len(groups[-1]) == 2:  # noqa: PLR2004 - a dump of bytes
        return False
    if written[0] not in "0(8" and _is_in_table(data, start, end) and not _FORMS["phone_word"].search(before):
        return False
    return any(_is_valid_in(region, written) and _is_grouped_as_in(region, written) for region in REGIONS)


def _is_in_table(data: bytes, start: int, end: int) -> bool:
    """Returns whether the digits may be two numbers side by side: round ones, or in a line with further long ones."""
    first, last = data.rfind(b"\n", 0, start) + 1, data.find(b"\n", end)
    beside = data[max(first, start - NEAR_LINE) : start], data[end : end + NEAR_LINE if last < 0 else last][:NEAR_LINE]
    return data[start:end].endswith(b"00") or any(map(_BYTES["long"].search, beside))


def is_near_phone(data: bytes, start: int, end: int) -> bool:
    """Returns whether bytes after a word for phones are a phone number of a large country, and no id or date."""
    written = data[start:end].decode()
    if _FORMS["date"].fullmatch(written) or _FORMS["ids_label"].search(_around(data, start, end)[0]):
        return False
    return _is_international(written) or any(_is_valid_in(region, written) for region in REGIONS)


def is_named_phone(data: bytes, start: int, end: int) -> bool:
    """Returns whether data[start:end], the value of a field named for phones, has the form of a phone number."""
    match = _BYTES["phone"].fullmatch(data, start, end)
    return match is not None and len(match[0].translate(None, b" ()./+-")) >= SHORTEST_PHONE


def _around(data: bytes, start: int, end: int) -> tuple[str, str]:
    """Returns the text before and behind, without the marks of redaction, which name kinds themselves."""
    before = data[max(0, start - NEAR_BEFORE) : start].decode("utf-8", "ignore")
    after = data[end : end + NEAR_AFTER].decode("utf-8", "ignore")
    return _FORMS["marker"].sub("", before), _FORMS["marker"].sub("", after)


def _is_international(written: str) -> bool:
    with suppress(phonenumbers.NumberParseException):
        return phonenumbers.is_valid_number(phonenumbers.parse(written, None))
    return False


@cache
def _shapes(region: str) -> tuple[str, re.Pattern[str]]:
    """Returns a region's trunk prefix and the expression of its fixed and mobile numbers without it."""
    known = phonenumbers.PhoneMetadata.metadata_for_region(region)
    assert known is not None  # noqa: S101 - for the type checker: the library has each of REGIONS
    patterns = [kind.national_number_pattern for kind in (known.fixed_line, known.mobile) if kind is not None]
    return known.national_prefix or "", re.compile("|".join(filter(None, patterns)))


def _is_valid_in(region: str, written: str) -> bool:
    """Returns whether the digits are a fixed or mobile number of the region, as it is dialled there."""
    digits = "".join(_FORMS["group"].findall(written))
    prefix, shape = _shapes(region)
    if prefix and digits.startswith(prefix) and shape.fullmatch(digits.removeprefix(prefix)):
        return True
    dialled_without = prefix != "0" or written.startswith("(") or region in _WITHOUT_PREFIX
    return dialled_without and shape.fullmatch(digits) is not None


def _is_grouped_as_in(region: str, written: str) -> bool:
    """Returns whether the first group of the digits is the area's or network's code, as the library writes it."""
    with suppress(phonenumbers.NumberParseException):
        number = phonenumbers.parse(written, region)
        usual = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.NATIONAL)
        first = _first_group(region, written)
        return first == _first_group(region, usual) or (region == "GB" and first in _OF_LONDON)
    return False


def _first_group(region: str, written: str) -> str:
    prefix, _ = _shapes(region)
    return next(filter(None, (group.removeprefix(prefix) for group in _FORMS["group"].findall(written))), "")


def warm_up() -> None:
    """Loads the phone library's data of every region, which takes 0.125 s, so that no request waits for it."""
    for region in REGIONS:
        _shapes(region)
