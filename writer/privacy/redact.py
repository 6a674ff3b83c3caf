"""Redacts secrets and personal data, before anything is stored, logged or embedded."""

import json
import re
from bisect import bisect
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import TypeVar, cast

from writer.privacy import engine
from writer.privacy.finds import MOST_PASSES, mark, marked
from writer.privacy.json_text import parsed, with_numbers
from writer.privacy.numbers import is_other_number, may_be_card
from writer.privacy.objects import (
    MOST_DEPTH,
    NOWHERE,
    NUMBER_KINDS,
    ValuePlace,
    is_secret,
    named,
    sensitive_name,
    walk,
)
from writer.privacy.rules import LABELLED, LOOKS, TOKENLIKE, signs, widened

Json = TypeVar("Json")

_APART = b"\n" * 8  # more white space than any rule spans, so that no rule matches across two texts
_NAME = re.compile(r"[A-Za-z_]{1,64}")
"""Form of keys and tools' names; strings of this form in which nothing was found are remembered."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """Number of redactions of one kind, such as e-mail addresses, in a text or a request."""

    kind: str
    count: int


def redact_text(text: str) -> tuple[str, Counter[str]]:
    """Returns the text with each secret replaced by `[REDACTED:kind]`, and the number of redactions of each kind.

    It searches the new text again until nothing is found, so that a second call would change nothing. A JSON text is
    still JSON afterwards.
    """
    clean, counts = marked(text)
    for _ in range(MOST_PASSES):
        finds: Counter[str] = Counter()
        clean = _numbers_inside(clean, NOWHERE, finds)
        if not finds:
            break
        clean, more = marked(clean)
        counts += finds + more
    if not counts or parsed(clean) is not None or (value := parsed(text)) is None:
        return clean, counts
    counts = Counter()
    clean, more = marked(json.dumps(walk(value, NOWHERE, counts, redact_at), ensure_ascii=False))
    if parsed(clean) is None:
        return '["[REDACTED:unread]"]', Counter(unread=1)
    return clean, counts + more


def without_secrets(text: str) -> str:
    """Returns the text as ``redact_text`` does, without the numbers of redactions."""
    return redact_text(text)[0]


def _numbers_inside(text: str, place: ValuePlace, counts: Counter[str]) -> str:
    """Returns a text that is JSON with the cards, phones and secrets among its numbers taken out; another unchanged.

    Rules for texts miss numbers that only the object around them tells of.
    """
    if place.sensitive in NUMBER_KINDS and is_secret(text, place.sensitive):
        return mark(place.sensitive, counts)
    value = with_numbers(text)
    if value is None:
        return text
    finds: Counter[str] = Counter()
    clean = walk(value, NOWHERE, finds, _numbers_inside)
    counts += finds
    return json.dumps(clean, ensure_ascii=False) if finds else text


def redact(value: Json) -> tuple[Json, list[Redaction]]:
    """Returns the JSON value with its strings, numbers and keys redacted, and the redactions by kind, sorted by name.

    The value keeps its structure; only a number that is a secret, a card or a phone becomes a text. One scan of all
    strings together finds the few strings that need a scan of their own.
    """
    strings, must_walk = _read(value)
    suspects = _suspects([text for text in strings if not (_NAME.fullmatch(text) and _is_clean_name(text))])
    if not (must_walk or suspects):
        return value, []
    counts: Counter[str] = Counter()

    def cleaned(text: str, place: ValuePlace, counts: Counter[str]) -> str:
        return redact_at(text, place, counts) if place.sensitive or text in suspects else text

    clean = walk(value, NOWHERE, counts, cleaned)
    return cast("Json", clean), [Redaction(kind, count) for kind, count in sorted(counts.items())]


@lru_cache(maxsize=4096)  # keys and names of tools come in every run: a fourth of the time
def _is_clean_name(name: str) -> bool:
    return not redact_text(name)[1]


def _read(value: object) -> tuple[list[str], bool]:
    """Returns the different strings, keys and large numbers of a JSON value, and whether all of it must be walked.

    It must where a key tells of a secret, or the value is deeper than MOST_DEPTH.
    """
    strings: dict[str, None] = {}
    keys: set[str] = set()
    must_walk = False
    level = [value]
    for _ in range(MOST_DEPTH):
        below: list[object] = []
        for item in level:
            if isinstance(item, str):
                strings[item] = None
            elif isinstance(item, dict):
                keys.update(item)
                must_walk = must_walk or (("value" in item or "number" in item) and bool(named(item)))
                below += item.values()
            elif isinstance(item, list):
                below += item
            elif may_be_card(item):
                strings[str(item)] = None
        if not below:
            break
        level = below
    strings.update(dict.fromkeys(keys))
    return list(strings), must_walk or bool(below) or any(map(sensitive_name, keys))


def _suspects(strings: Sequence[str]) -> set[str]:
    """Returns the strings that may hold a find when each is redacted alone, by one scan of all strings together."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in strings]
    data = _APART.join(encoded)
    starts = list(accumulate((len(each) + len(_APART) for each in encoded), initial=0))
    suspects: set[int] = set()
    places, looks = signs(data)
    for regex in (*map(widened, places), *(LOOKS[name] for name in looks - {TOKENLIKE}), LABELLED):
        position = 0
        while match := regex.search(data, position):
            first, last = (bisect(starts, each) - 1 for each in (match.start(), match.end() - 1))
            suspects.update(range(first, last + 1))
            position = starts[last + 1] - 1  # a rule may want to see what stands before
    if looks:
        rest = [each for place, each in enumerate(encoded) if place not in suspects]
        if any(engine.finds(_APART.join(rest))):
            return set(strings)
    return {strings[place] for place in suspects}


def redact_at(text: str, place: ValuePlace, counts: Counter[str]) -> str:
    """Returns the text redacted, as the value of the key at its place; adds the redactions to ``counts``."""
    if is_secret(text, place.sensitive):
        return mark(place.sensitive, counts)
    if is_other_number(text, place.name):
        return text
    clean, finds = redact_text(text)
    if finds and is_secret(clean, place.sensitive):  # the rest may look like a secret although the whole did not
        return mark(place.sensitive, counts)
    counts.update(finds)
    return clean
