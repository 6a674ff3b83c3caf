"""Redaction of secrets and personal data, before anything is stored, logged or embedded.

The fixed token formats come from the `detect_secrets` library; the patterns here are for what it lacks: newer
formats, assignments, credentials in headers and URLs. RE2 runs all of them, so time is linear whatever the text.
A text is scanned once by the set of all rules, and only a rule that the set reports is run by itself.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar, cast

from writer.privacy.checks import CHECKS, PATH, QUOTES, is_real
from writer.privacy.patterns import PERSONAL, SECRETS, SENSITIVE_KEY
from writer.privacy.rules import ANY_RULE, KINDS, RULES, Regex

Json = TypeVar("Json")

MOST_CANDIDATES = 10_000  # candidates of one rule in one text; what comes after them is cut, not trusted
MOST_PASSES = 8  # a replacement may uncover a neighbour; a text that needs more than this was made to
MOST_DEPTH = 250  # orjson writes no deeper value
SHORTEST = 6  # no rule matches less: a@b.co

_ESCAPED = re.compile(r"(?<!\\)\\++(?:u00([2-7][0-9a-fA-F])|/)")


@dataclass(frozen=True, slots=True)
class Redaction:
    """How many finds of one kind were taken out."""

    kind: str
    count: int


def redact_text(text: str) -> tuple[str, Counter[str]]:
    """The text with each find replaced by `[REDACTED:kind]`, and how many of each kind there were."""
    if len(text) < SHORTEST:
        return text, Counter()
    plain = _ESCAPED.sub(_unescaped, text) if "\\u00" in text or "\\/" in text else text
    data = plain.encode("utf-8", "surrogatepass")
    if not ANY_RULE.Match(data):  # as good as every text: one scan, and nothing else
        return text, Counter()
    data, found = _redacted(data)
    return (data.decode("utf-8", "surrogatepass") if found else text), found


def redact(value: Json) -> tuple[Json, list[Redaction]]:
    """The JSON value with its strings and keys redacted, and the finds by kind, in the order of their names.

    It keeps its shape; only an integer that is a password becomes a text.
    """
    if _is_clean(value):
        return value, []
    found: Counter[str] = Counter()
    clean = _walk(value, "", found, MOST_DEPTH)
    return cast("Json", clean), [Redaction(kind, count) for kind, count in sorted(found.items())]


def _is_clean(value: object) -> bool:
    """Whether one scan of all the strings together shows that there is nothing to take out; most runs are so."""
    strings = _strings(value)
    if strings is None:
        return False
    text = "\n".join(strings)  # no rule is bound to the end of a text, and each sees the start of one here
    return "\\u00" not in text and "\\/" not in text and not ANY_RULE.Match(text.encode("utf-8", "surrogatepass"))


def _strings(value: object) -> list[str] | None:
    """The value's strings and keys; None if its depth or a key asks for a closer look."""
    strings: list[str] = []
    level = [value]
    for _ in range(MOST_DEPTH):
        below: list[object] = []
        for item in level:
            if isinstance(item, str):
                strings.append(item)
            elif isinstance(item, dict):
                if any(map(_sensitive_name, item)) or ("value" in item and _sensitive(item.get("name"))):
                    return None
                strings += item
                below += item.values()
            elif isinstance(item, list):
                below += item
        if not below:
            return strings
        level = below
    return None


def _walk(value: object, sensitive: str, found: Counter[str], depth: int) -> object:
    if isinstance(value, str):
        return _clean(value, sensitive, found)
    if not depth and isinstance(value, dict | list):
        return _mark("too-deep", found)
    if isinstance(value, dict):
        return _walk_dict(value, found, depth)
    if isinstance(value, list):
        return [_walk(item, sensitive, found, depth - 1) for item in value]
    return _mark(sensitive, found) if sensitive == "password" and type(value) is int else value


def _walk_dict(value: Mapping[str, object], found: Counter[str], depth: int) -> dict[str, object]:
    named = _sensitive(value.get("name"))  # {"name": "DB_PASSWORD", "value": "..."}
    clean: dict[str, object] = {}
    for key, item in value.items():
        name = free = _clean(key, "", found)
        copy = 1
        while free in clean:  # two addresses as keys must not become one entry
            copy += 1
            free = f"{name} ({copy})"
        clean[free] = _walk(item, _sensitive(key) or (named if key == "value" else ""), found, depth - 1)
    return clean


def _sensitive(key: object) -> str:
    """The kind of secret that a key of this name holds, or an empty string."""
    return _sensitive_name(key) if isinstance(key, str) else ""


@lru_cache(maxsize=4096)  # the same few names come in every run
def _sensitive_name(key: str) -> str:
    match = SENSITIVE_KEY.fullmatch(key)
    return (match and match.lastgroup) or ""


def _clean(text: str, sensitive: str, found: Counter[str]) -> str:
    data = text.encode("utf-8", "surrogatepass") if sensitive else b""
    if data.strip() and not PATH.fullmatch(data) and is_real(data, 0, len(data)):
        return _mark(sensitive, found)
    clean, finds = redact_text(text)
    if finds:
        found.update(finds)
    return clean


def _mark(kind: str, found: Counter[str]) -> str:
    found[kind] += 1
    return f"[REDACTED:{kind}]"


def _unescaped(match: re.Match[str]) -> str:
    r"""The character behind `\u0040` or `\/`, at whatever depth of JSON inside JSON; quotes stay, they delimit."""
    char = chr(int(match[1], 16)) if match[1] else "/"
    return match[0] if char in "\"'\\\x7f" else char


def _redacted(data: bytes) -> tuple[bytes, Counter[str]]:
    """The bytes after redacting until nothing more is found, so that a second call changes nothing."""
    found: Counter[str] = Counter()
    for _ in range(MOST_PASSES):
        data, finds = _pass(data)
        if not finds:
            return data, found
        found += finds
    return b"[REDACTED:unread]", Counter(unread=1)


def _pass(data: bytes) -> tuple[bytes, Counter[str]]:
    found: Counter[str] = Counter()
    hits = [RULES[index] for index in ANY_RULE.Match(data) or ()]
    # Secrets go first: an e-mail address inside a connection string must not cut it in two.
    for stage in (SECRETS, PERSONAL):
        rules = [(kind, regex) for kind, regex in hits if (kind in PERSONAL) is (stage is PERSONAL)]
        data = _replace(data, [span for kind, regex in rules for span in _finds(kind, regex, data)], found)
    return data, found


def _finds(kind: str, regex: Regex, data: bytes) -> Iterator[tuple[int, int, str]]:
    """The start, end and kind of each find, in bytes; a rejected quoted value is searched again inside."""
    check = CHECKS.get(kind, is_real)
    position = candidates = 0
    while match := regex.search(data, position):
        candidates += 1
        if candidates > MOST_CANDIDATES:
            yield match.start(), len(data), "unread"
            return
        start, end = next((match.span(i) for i in range(1, regex.groups + 1) if match.end(i) > 0), match.span())
        position = match.end()
        if check(data, start, end):
            yield start, end, kind
        elif match.start() < start and data[start - 1 : start] in QUOTES:
            position = start


def _replace(data: bytes, spans: list[tuple[int, int, str]], found: Counter[str]) -> bytes:
    """The bytes with each run of overlapping spans replaced by one marker, named by the most specific kind."""
    runs: list[tuple[int, int, str]] = []
    for start, end, kind in sorted(spans):
        if runs and start < runs[-1][1]:
            first, last, other = runs.pop()
            runs.append((first, max(last, end), min(kind, other, key=KINDS.index)))
        else:
            runs.append((start, end, kind))
    pieces: list[bytes] = []
    kept = 0
    for start, end, kind in runs:
        pieces += data[kept:start], _mark(kind, found).encode()
        kept = end
    return b"".join([*pieces, data[kept:]])
