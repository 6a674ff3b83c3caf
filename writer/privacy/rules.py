"""Rules of redaction as RE2 expressions and as one set."""

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

import re2

from writer.privacy.patterns import ALL, ANY_NAME, LOOSE, LOOSE_SIGN, PHONE_WORDS, WEAK

SET_MEMORY_BYTES = 32 << 20
LONG_BYTES, SETS_OF_LONG = 1 << 14, 16
"""Bytes from which a text is scanned by several sets of rules, and the number of these sets.

In a long text many rules match, and one automaton for all of them would exceed its memory and be rebuilt repeatedly."""

_BOUND = re.compile(r"(?<!\\)\{([01]),\d+\}")


def _compiled(pattern: str, *, capture: bool = False) -> re.Pattern[bytes]:
    options = re2.Options()
    options.log_errors, options.never_capture, options.max_mem = False, not capture, SET_MEMORY_BYTES
    expression: re.Pattern[bytes] = re2.compile(pattern, options)
    return expression


def _set_of(patterns: Iterable[str], memory_bytes: int = SET_MEMORY_BYTES) -> Any:
    """Returns a set of RE2, which ships no types, whose ``Match`` finds in one scan the indices of the patterns that match."""
    options = re2.Options()
    options.max_mem = memory_bytes
    rules_set = re2.Set.SearchSet(options)
    for pattern in patterns:
        rules_set.Add(pattern)
    rules_set.Compile()
    return rules_set


_UNBOUNDED = [_BOUND.sub(lambda least: "*" if least[1] == "0" else "+", each) for each in ALL.values()]
"""Patterns of the rules with unbounded repetitions, which take a tenth of the memory and start-up time in a set."""
RULES = [(kind, _compiled(pattern, capture=True)) for kind, pattern in ALL.items()]
"""All rules of redaction: pairs of the kind of secret and the expression that finds it, the most specific first."""

# Signs in a text that require a closer look.
NAMED, DISGUISED, ENCODED, TOKENLIKE = "named", "disguised", "encoded", "token-like"
_SIGNS = {
    NAMED: rf"(?i){ANY_NAME}|{WEAK}\b",
    DISGUISED: (
        r"\\u[0-9a-fA-F]{4}|\\/|%[2-7][0-9a-fA-F]|&(?:amp|apos|gt|lt|quot|#\w{2,3});|\\\n|[\"'`][ \t]*(?:\+|\.{1,2}|&|\|\||\\?\n)\s*\\*[\"'`]"
        r"|[\x{ad}\x{34f}\x{180e}\x{200b}-\x{200f}\x{202a}-\x{202e}\x{2060}-\x{2064}\x{feff}\x{ff01}-\x{ff5e}]"
        r"|\d[\x{a0}\x{2007}\x{2009}\x{202f}\x{2010}-\x{2013}\x{2212}\x{3000}]\d"
        r"|[A-Za-z][аеорсухіѕԁ]+[A-Za-z]"  # noqa: RUF001 - Cyrillic on purpose
    ),
    ENCODED: r"[A-Za-z0-9+/_-]{20}",
    TOKENLIKE: r"[\w+/=~.-]{8}\d|\d[\w+/=~.-]{9}|[\w+/=~.-]{20}",
    LOOSE: LOOSE_SIGN,
}
LOOKS = {name: _compiled(pattern) for name, pattern in _SIGNS.items()}
"""Expressions that find the signs of a text that needs a closer look, by the names of the signs."""
LABELLED = _compiled(rf"(?i)(?:{PHONE_WORDS}|\bssn|pin)\\*\"")
"""Pattern of names in a JSON text whose numbers must be judged by the names around them."""
_SET = [place for place, (kind, _) in enumerate(RULES) if kind != LOOSE]
_LOOSE_PLACE = next(place for place, (kind, _) in enumerate(RULES) if kind == LOOSE)
_ANY_RULE = _set_of(_UNBOUNDED[place] for place in _SET)
_ANY_LOOK = _set_of(_SIGNS.values())
_LOOK_NAMES = list(LOOKS)


@cache
def widened(place: int) -> re.Pattern[bytes]:
    """Returns a rule with unbounded repetitions, as in the set of all rules, so that both match in the same texts."""
    return _compiled(_UNBOUNDED[place])


@cache
def _sets_of_long() -> list[tuple[list[int], Any]]:
    """Returns the sets for long texts, each with the indices of its rules."""
    parts = [_SET[first::SETS_OF_LONG] for first in range(SETS_OF_LONG)]
    return [(part, _set_of([_UNBOUNDED[place] for place in part], SET_MEMORY_BYTES // SETS_OF_LONG)) for part in parts]


def signs(data: bytes) -> tuple[list[int], set[str]]:
    """Returns the indices of the rules that can match a text, and the text's signs that require a closer look."""
    looks = {_LOOK_NAMES[place] for place in _ANY_LOOK.Match(data) or []}
    if len(data) < LONG_BYTES:
        places = [_SET[place] for place in _ANY_RULE.Match(data) or []]
    else:
        places = sorted(part[place] for part, rules_set in _sets_of_long() for place in rules_set.Match(data) or [])
    return ([*places, _LOOSE_PLACE] if LOOSE in looks else places), looks - {LOOSE}
