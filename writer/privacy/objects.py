"""Redacts secrets and personal data in JSON values: values under names such as `password`, and parts of texts."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

from retrieval.patterns import word_sets
from writer.privacy.checks import CHECKS, PATH, is_real
from writer.privacy.finds import mark
from writer.privacy.numbers import MOST_CARD, TEST_CARDS, is_ids_name, kind_of_name, may_be_card, speaks, tells_of_cards
from writer.privacy.patterns import SENSITIVE_KEY

MOST_DEPTH = 250  # orjson writes no deeper value
SEVERAL = "token/several"  # values under `tokens` or `secrets`, or nested below such a key; not all are secrets
NUMBER_KINDS = frozenset({"card-code", "payment-card", "phone", "pin", "ssn"})
_WORDS = word_sets("writer.privacy", "objects")
PARTS_OF_NUMBER = _WORDS["parts_of_number"]
"""Names of the fields that hold the digits, in an object that describes a card or a phone."""
TYPES = ("type", "label", "kind", "field")
"""Names of fields that tell the kind of a number in the same object."""
SHORTEST_SECRET = 10**5
"""Least number that counts as a secret under a name for secrets; smaller numbers are counts."""
SSN_DIGITS = 9
_SIGNS = " \t\n:=*?"
"""Signs around the name in a key, as in "Password: "."""
_PURPOSE = re.compile(r"(?i)\s+(?:for|of|on|to)\s.*")
"""The end of a title such as "Password for staging"."""
_ALONE = re.compile(
    r"""(?mx) ^ [ \t>*+"'`-]{0,20} (?: [^\s"'`/]{1,64} [ \t]{1,3} / [ \t]{1,3} )? ([^\s"'`]{1,200}) ["'`]{0,3} [ \t]* $
    | \A [\s>*+"'`-]{0,20} ([^\s"'`]{1,200})"""
)
"""A word that has a line of its own, or one with a user before it, as in ``ada / word``; and the first word of a text."""
LONGEST_LABEL = 24
"""Maximum characters of a text that can tell the kind of a number in the same object."""


class ValuePlace(NamedTuple):
    """The place of a value in an object.

    Attributes:
        name: key of the value, or of the list that holds the value; empty: there is no key.
        sensitive: kind of secret by the value's key, or by the key of the object around the value; empty: no secret.
    """

    name: str = ""
    sensitive: str = ""


NOWHERE = ValuePlace()
"""The place of a text without a key, and of a key."""

Cleaner = Callable[[str, ValuePlace, Counter[str]], str]
"""A function that returns a text at a place redacted, and counts its redactions by kind."""


def walk(value: object, place: ValuePlace, counts: Counter[str], cleaned: Cleaner, depth: int = MOST_DEPTH) -> object:
    """Returns a JSON value with its texts and numbers redacted.

    Redactions are added to ``counts``, by kind. Values below ``depth`` levels are replaced by a mark.
    """
    if isinstance(value, str):
        return cleaned(value, place, counts)
    if not depth and isinstance(value, dict | list):
        return mark("too-deep", counts)
    if isinstance(value, dict):
        return _walk_object(value, place.sensitive, counts, cleaned, depth)
    if isinstance(value, list):
        return [walk(item, place, counts, cleaned, depth - 1) for item in value]
    if isinstance(value, int | float) and not isinstance(value, bool) and (kind := _kind_of_number(value, place)):
        return mark(kind, counts)
    return value


def _walk_object(
    value: dict[str, object], sensitive: str, counts: Counter[str], cleaned: Cleaner, depth: int
) -> dict[str, object]:
    around = sensitive if not sensitive or sensitive in NUMBER_KINDS else SEVERAL
    # the name is in another field: {"name": "DB_PASSWORD", "value": "..."}
    own = named(value) if "value" in value or "number" in value else ""
    clean: dict[str, object] = {}
    for key, item in value.items():
        name = free = cleaned(key, NOWHERE, counts)
        copy = 1
        while free in clean:  # two addresses as keys must not become one entry
            copy += 1
            free = f"{name} ({copy})"
        kind = sensitive_name(key) or (own if key in {"value", "number"} else "")
        if not kind and (around not in NUMBER_KINDS or key.lower() in PARTS_OF_NUMBER):
            kind = around
        clean[free] = walk(item, ValuePlace(key, kind), counts, cleaned, depth - 1)
    digits = [key for key, item in clean.items() if may_be_card(item) and not is_ids_name(key)]
    if digits:
        labels = [item for item in clean.values() if isinstance(item, str) and len(item) <= LONGEST_LABEL]
        if tells_of_cards(" ".join([*clean, *labels])):  # {"number": 4111111111111111, "cvc": 123}
            for key in digits:
                clean[key] = walk(clean[key], ValuePlace(key, "payment-card"), counts, cleaned, depth - 1)
    return clean


def _kind_of_number(value: float, place: ValuePlace) -> str:
    """Returns the kind of secret or personal data that a number at this place is, or an empty string."""
    if place.sensitive in {"card-code", "pin"}:
        return place.sensitive if is_secret(str(int(value)).zfill(3), place.sensitive) else ""
    if not SHORTEST_SECRET <= value < MOST_CARD:
        return "password" if place.sensitive == "password" and isinstance(value, int) else ""
    digits = str(int(value))
    if place.sensitive in NUMBER_KINDS:
        digits = digits.zfill(SSN_DIGITS) if place.sensitive == "ssn" else digits
        return place.sensitive if is_secret(digits, place.sensitive) else ""
    if place.sensitive in {"password", "token", "authorization"}:
        return place.sensitive
    is_card = digits in TEST_CARDS or (speaks(place.name) and is_secret(digits, "payment-card"))
    return "payment-card" if is_card else ""


def named(item: Mapping[str, object]) -> str:
    """Returns the kind of secret in an object's field `value`, by fields such as `name` and `type`; empty: none."""
    kinds = {name: sensitive_name(key) for name in ("name", "key", *TYPES) if isinstance(key := item.get(name), str)}
    number = next((kinds[name] for name in TYPES if kinds.get(name) in NUMBER_KINDS), "")
    return kinds.get("name") or kinds.get("key") or number


@lru_cache(maxsize=4096)  # the same few names come in every run
def sensitive_name(key: str) -> str:
    """Returns the kind of secret or number in the value of a key with this name; empty: none."""
    key = key.strip(_SIGNS)
    match = SENSITIVE_KEY.fullmatch(key)
    kind = (match and match.lastgroup) or kind_of_name(key)
    if kind == "weak":
        return "password/weak"
    return SEVERAL if kind == "token" and key.endswith(("s", "S")) else kind


def is_secret(text: str, sensitive: str) -> bool:
    """Returns whether a text is a secret where it is the value of a key for secrets of this kind, such as ``password``."""
    data = text.encode("utf-8", "surrogatepass") if sensitive else b""
    if not data.strip():
        return False
    if (check := CHECKS.get(f"{sensitive}/key")) is not None:
        return check(data, 0, len(data))
    return not PATH.fullmatch(data) and is_real(data, 0, len(data))


def without_titled_secrets(title: str, text: str) -> str:
    """Returns a redacted text without secrets that only its title tells of, such as "Staging DB password".

    Under such a title a text of one word is a secret. A longer one may be prose about passwords: in it a word that
    stands alone, or first, is taken out if it looks like a password or a key.
    """
    kind = sensitive_name(title) or sensitive_name(_PURPOSE.sub("", title))
    if kind in NUMBER_KINDS or len(text.split()) == 1:
        return mark(kind, Counter()) if is_secret(text.strip(), kind) else text

    def cleaned(found: re.Match[str]) -> str:
        word = found[found.lastindex or 0]
        return found[0].replace(word, mark(kind, Counter())) if is_secret(word, "password/weak") else found[0]

    return _ALONE.sub(cleaned, text) if kind else text
