"""The rules of redaction: those of the `detect_secrets` library and our own, as expressions of RE2 and as one set."""

import pkgutil
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Protocol, cast

import re2
from detect_secrets import plugins
from detect_secrets.plugins.base import RegexBasedDetector

from writer.privacy.everyday import ARGUMENT, EVERYDAY, SAID, SET
from writer.privacy.patterns import ANY_NAME, PERSONAL, SECRETS
from writer.privacy.providers import LOOSE, LOOSE_SIGN, PROVIDER_TOKEN, PROVIDERS

SET_MEMORY_BYTES = 32 << 20
LONG_BYTES, SETS_OF_LONG = 1 << 14, 16
"""From which length on a text is scanned for a part of the rules at a time, and in how many parts: where many rules
match, one automaton for all of them has more states than memory, and is built over and over."""

# Their matches swallow the words around the secret, or take a lockfile's sha512 for a key; there are own ones below.
_PLUGINS_LEFT_OUT = {"artifactory", "azure_storage_key", "basic_auth", "npm", "private_key"}
_KEYWORD_AT_A_DISTANCE = ".{0,"
_BOUND = re.compile(r"(?<!\\)\{([01]),\d+\}")


class Match(Protocol):
    """Where an expression of RE2 matches; positions in bytes, -1 for a group that took no part."""

    def span(self, group: int = 0, /) -> tuple[int, int]:
        """Start and end."""
        ...

    def start(self, group: int = 0, /) -> int:
        """The first byte."""
        ...

    def end(self, group: int = 0, /) -> int:
        """The byte behind the last."""
        ...


class Regex(Protocol):
    """An expression of RE2, which ships no types."""

    @property
    def pattern(self) -> str:
        """As it was written."""

    @property
    def groups(self) -> int:
        """How many groups it captures."""

    def search(self, data: bytes, start: int = 0, /) -> Match | None:
        """The first match from ``start`` on."""
        ...


class RegexSet(Protocol):
    """A set of RE2's expressions, scanned together."""

    def Match(self, data: bytes, /) -> list[int]:  # noqa: N802 - RE2's name
        """The places of the expressions that match."""
        ...


def _library_rules() -> Iterator[tuple[str, str]]:
    """The kind and pattern of each rule of the library that takes out no more than the secret."""
    names = {module.name for module in pkgutil.iter_modules(plugins.__path__)} - _PLUGINS_LEFT_OUT
    for name in sorted(names):
        import_module(f"{plugins.__name__}.{name}")
    for plugin in RegexBasedDetector.__subclasses__():
        kind = str(plugin.secret_type).lower().replace(" ", "-")
        for rule in vars(plugin)["denylist"] if plugin.__module__.rpartition(".")[2] in names else ():
            if _KEYWORD_AT_A_DISTANCE not in rule.pattern:
                yield kind, f"(?i){rule.pattern}" if rule.flags & re.IGNORECASE else rule.pattern


def _compiled(patterns: Iterable[tuple[str, str]], *, capture: bool) -> Iterator[tuple[str, Regex]]:
    """The kind and the RE2 expression of each pattern that RE2 can run; it has no look-around."""
    options = re2.Options()
    options.log_errors, options.never_capture, options.max_mem = False, not capture, SET_MEMORY_BYTES
    for kind, pattern in patterns:
        with suppress(re2.error):
            yield kind, re2.compile(pattern, options)


def _set_of(rules: Sequence[tuple[str, Regex]], memory_bytes: int = SET_MEMORY_BYTES) -> RegexSet:
    """The set that tells in one scan which of the rules can match a text, by their places in the list.

    Its expressions repeat without a bound, which a bounded repetition implies: a tenth of the memory and of the start.
    """
    options = re2.Options()
    options.max_mem = memory_bytes
    rules_set = re2.Set.SearchSet(options)
    for _, regex in rules:
        rules_set.Add(_BOUND.sub(lambda least: "*" if least[1] == "0" else "+", regex.pattern))
    rules_set.Compile()
    return cast("RegexSet", rules_set)


_OWN = {**SECRETS, **EVERYDAY, **PROVIDERS, **PERSONAL}
RULES = [*_compiled(_library_rules(), capture=False), *_compiled(_OWN.items(), capture=True)]
"""Kind and expression, the most specific first."""
KINDS = ["unread", *(kind for kind, _ in RULES), ARGUMENT, SET, SAID, PROVIDER_TOKEN]
RANK = {kind: place for place, kind in enumerate(KINDS)}
"""The smaller, the more specific."""

# What is looked at more closely if the text has any of it, in one scan together.
NAMED, DISGUISED, ENCODED, TOKENLIKE = "named", "disguised", "encoded", "token-like"
_SIGNS = {
    NAMED: rf"(?i){ANY_NAME}|\b(?:pass|pw)\b",
    DISGUISED: (
        r"\\u00[2-7]|\\/|%[2-7][0-9a-fA-F]|&(?:amp|apos|gt|lt|quot|#\w{2,3});|\\\n|[\"'`][ \t]*(?:\+|\.{1,2}|&|\|\||\\?\n)\s*\\*[\"'`]"
        r"|[\x{ad}\x{34f}\x{180e}\x{200b}-\x{200f}\x{202a}-\x{202e}\x{2060}-\x{2064}\x{feff}\x{ff01}-\x{ff5e}]"
        r"|[A-Za-z][аеорсухіѕԁ]+[A-Za-z]"  # noqa: RUF001 - Cyrillic on purpose
    ),
    ENCODED: r"[A-Za-z0-9+/_-]{20}",
    TOKENLIKE: r"[\w+/=~.-]{8}\d|\d[\w+/=~.-]{9}|[\w+/=~.-]{20}",
}
_LOOKS = dict(_compiled({**_SIGNS, LOOSE: LOOSE_SIGN}.items(), capture=False))
_SET = [place for place, (kind, _) in enumerate(RULES) if kind != LOOSE]
_LOOSE_PLACE = next(place for place, (kind, _) in enumerate(RULES) if kind == LOOSE)
ANY_RULE = _set_of([RULES[place] for place in _SET])


@cache
def _sets_of_long() -> list[tuple[list[int], RegexSet]]:
    """Places of rules, and the set of them."""
    parts = [_SET[first::SETS_OF_LONG] for first in range(SETS_OF_LONG)]
    return [(part, _set_of([RULES[place] for place in part], SET_MEMORY_BYTES // SETS_OF_LONG)) for part in parts]


def _matching(data: bytes) -> list[int]:
    """The places of the rules in the set that can match, rising."""
    if len(data) < LONG_BYTES:
        return [_SET[place] for place in ANY_RULE.Match(data) or []]
    return sorted(part[place] for part, rules_set in _sets_of_long() for place in rules_set.Match(data) or [])


def signs(data: bytes) -> tuple[list[int], set[str]]:
    """The places of the rules that can match the text, and what else it has that asks for a closer look."""
    looks = {name for name, regex in _LOOKS.items() if regex.search(data)}
    places = _matching(data)
    return ([*places, _LOOSE_PLACE] if LOOSE in looks else places), looks - {LOOSE}
