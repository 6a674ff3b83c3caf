"""Redaction of secrets and personal data, before anything is stored, logged or embedded.

The fixed token formats come from the `detect_secrets` library; the patterns here are for what it lacks: newer
formats, assignments, credentials in headers and URLs. RE2 runs all of them, so time is linear whatever the text.
A text is scanned once by the set of all rules, and only a rule that the set reports is run by itself.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar, cast

from writer.privacy import engine, layouts
from writer.privacy.checks import CHECKS, PATH, QUOTES, check_of, is_real
from writer.privacy.disguises import Revealed, encoded, revealed
from writer.privacy.patterns import PERSONAL, SENSITIVE_KEY
from writer.privacy.rules import DISGUISED, ENCODED, NAMED, RANK, RULES, TOKENLIKE, Regex, signs

Json = TypeVar("Json")

MOST_CANDIDATES = 10_000  # candidates of one rule in one text; what comes after them is cut, not trusted
MOST_PASSES = 8  # a replacement may uncover a neighbour; a text that needs more than this was made to
FEW = 20  # finds of the rules
MOST_DEPTH = 250  # orjson writes no deeper value
SHORTEST = 6  # no rule matches less: a@b.co

MOST_ENCODINGS = 3  # of base64 in base64

PERSONAL_PLACES = frozenset(place for place, (kind, _) in enumerate(RULES) if kind in PERSONAL)
SECRET_PLACES = frozenset(range(len(RULES))) - PERSONAL_PLACES
SEVERAL = "token/several"  # under `tokens` or `secrets`, and in what lies below a telling name, not all is one
_APART = "\n" * 8  # more white space than any rule spans, so that two texts say nothing together
_CONTINUED = bytes(range(0x80, 0xC0))

Span = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Redaction:
    """How many finds of one kind were taken out."""

    kind: str
    count: int


def redact_text(text: str) -> tuple[str, Counter[str]]:
    """The text with each find replaced by `[REDACTED:kind]`, and how many of each kind there were.

    It goes on until nothing more is found, so that a second call changes nothing.
    """
    found: Counter[str] = Counter()
    if len(text) < SHORTEST:
        return text, found
    for _ in range(MOST_PASSES):
        clean, finds = _pass(text)
        if not finds:
            return text, found
        text, found = clean, found + finds
    return "[REDACTED:unread]", Counter(unread=1)


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
    data = _APART.join(strings).encode("utf-8", "surrogatepass")
    places, looks = signs(data)
    return not places and looks <= {TOKENLIKE} and not (looks and any(engine.finds(data)))


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
                if any(map(_sensitive_name, item)) or (
                    "value" in item and (_sensitive(item.get("name")) or _sensitive(item.get("key")))
                ):
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
        return _walk_dict(value, SEVERAL if sensitive else "", found, depth)
    if isinstance(value, list):
        return [_walk(item, sensitive, found, depth - 1) for item in value]
    return _mark(sensitive, found) if sensitive == "password" and type(value) is int else value


def _walk_dict(value: Mapping[str, object], around: str, found: Counter[str], depth: int) -> dict[str, object]:
    named = _sensitive(value.get("name")) or _sensitive(value.get("key"))  # {"name": "DB_PASSWORD", "value": "..."}
    clean: dict[str, object] = {}
    for key, item in value.items():
        name = free = _clean(key, "", found)
        copy = 1
        while free in clean:  # two addresses as keys must not become one entry
            copy += 1
            free = f"{name} ({copy})"
        clean[free] = _walk(item, _sensitive(key) or (named if key == "value" else "") or around, found, depth - 1)
    return clean


def _sensitive(key: object) -> str:
    """The kind of secret that a key of this name holds, or an empty string."""
    return _sensitive_name(key) if isinstance(key, str) else ""


@lru_cache(maxsize=4096)  # the same few names come in every run
def _sensitive_name(key: str) -> str:
    match = SENSITIVE_KEY.fullmatch(key)
    kind = (match and match.lastgroup) or ""
    if kind == "weak":
        return "password/weak"
    return SEVERAL if kind == "token" and key.endswith(("s", "S")) else kind


def _clean(text: str, sensitive: str, found: Counter[str]) -> str:
    if _is_secret(text, sensitive):
        return _mark(sensitive, found)
    clean, finds = redact_text(text)
    if finds and _is_secret(clean, sensitive):  # what is left of it may look like one where the whole did not
        return _mark(sensitive, found)
    found.update(finds)
    return clean


def _is_secret(text: str, sensitive: str) -> bool:
    """Whether the text is what a key of a secret's name holds."""
    data = text.encode("utf-8", "surrogatepass") if sensitive else b""
    return bool(data.strip()) and CHECKS.get(f"{sensitive}/key", _is_given)(data, 0, len(data))


def _is_given(data: bytes, start: int, end: int) -> bool:
    return not PATH.fullmatch(data, start, end) and is_real(data, start, end)


def _mark(kind: str, found: Counter[str]) -> str:
    kind = kind.partition("/")[0]
    found[kind] += 1
    return f"[REDACTED:{kind}]"


def _pass(text: str) -> tuple[str, Counter[str]]:
    found: Counter[str] = Counter()
    # Secrets go first: an e-mail address inside a connection string must not cut it in two.
    for find in (_secrets, _personal):
        if spans := list(find(text)):
            data = _replace(text.encode("utf-8", "surrogatepass"), spans, found)
            text = data.decode("utf-8", "surrogatepass")
    return text, found


def _secrets(text: str, depth: int = MOST_ENCODINGS) -> Iterator[Span]:
    """The start, end and kind of each secret, in bytes: as it stands there, in disguise, encoded."""
    data = text.encode("utf-8", "surrogatepass")
    places, looks = signs(data)
    spans = list(_by_rules(data, places, SECRET_PLACES))
    yield from spans
    if TOKENLIKE in looks:  # it takes long over what it finds, so of a text with many it gets what the rules left
        yield from engine.finds(data if len(spans) <= FEW else _without(data, spans))
    if NAMED in looks:
        yield from (span for span in layouts.finds(data) if check_of(span[2])(data, *span[:2]))
    if DISGUISED in looks and depth and (plain := revealed(text)):
        if plain.end < len(text):
            yield len(text[: plain.end].encode("utf-8", "surrogatepass")), len(data), "unread"
        yield from _in_bytes(text, list(_behind(plain, list(_secrets(plain.text, 0)))))
    if ENCODED in looks and depth:
        yield from _in_bytes(text, list(_in_encoded(text, depth)))


def _personal(text: str, depth: int = 1) -> Iterator[Span]:
    """The start, end and kind of each find of personal data, in bytes."""
    data = text.encode("utf-8", "surrogatepass")
    places, looks = signs(data)
    yield from _by_rules(data, places, PERSONAL_PLACES)
    if DISGUISED in looks and depth and (plain := revealed(text)):
        yield from _in_bytes(text, list(_behind(plain, list(_personal(plain.text, 0)))))


def _by_rules(data: bytes, places: Iterable[int], wanted: Container[int]) -> Iterator[Span]:
    for kind, regex in (RULES[place] for place in places if place in wanted):
        yield from _finds(kind, regex, data)


def _without(data: bytes, spans: Iterable[Span]) -> bytes:
    """The bytes with the spans blanked, of the same length."""
    rest = bytearray(data)
    for start, end, _ in spans:
        rest[start:end] = b" " * (end - start)
    return bytes(rest)


def _behind(plain: Revealed, spans: Sequence[Span]) -> Iterator[Span]:
    """The spans in the characters of the disguised text, of spans in the bytes of the plain one."""
    data = plain.text.encode("utf-8", "surrogatepass")
    for start, end, kind in _shifted(
        sorted(spans), lambda first, last: len(data[first:last].translate(None, _CONTINUED))
    ):
        yield (*plain.in_disguise(start, end), kind)


def _in_bytes(text: str, spans: Sequence[Span]) -> Iterator[Span]:
    """The spans in bytes, of spans in characters."""
    if text.isascii():
        return iter(spans)
    return _shifted(sorted(spans), lambda first, last: len(text[first:last].encode("utf-8", "surrogatepass")))


def _shifted(spans: Sequence[Span], measured: Callable[[int, int], int]) -> Iterator[Span]:
    """The spans in another measure, which is told of each piece of the text; linear, whatever overlaps."""
    places = sorted({place for start, end, _ in spans for place in (start, end)})
    shifted, before, total = {}, 0, 0
    for place in places:
        total += measured(before, place)
        shifted[place] = total
        before = place
    return ((shifted[start], shifted[end], kind) for start, end, kind in spans)


def _in_encoded(text: str, depth: int) -> Iterator[Span]:
    """The start and end, in characters, of each encoded text that holds a secret."""
    for start, end, says in encoded(text):
        if inside := next(_secrets(says, depth - 1), None):
            yield start, end, inside[2]


def _finds(kind: str, regex: Regex, data: bytes) -> Iterator[Span]:
    """The start, end and kind of each find, in bytes; a rejected quoted value is searched again inside."""
    check = check_of(kind)
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


def _replace(data: bytes, spans: list[Span], found: Counter[str]) -> bytes:
    """The bytes with each run of overlapping spans replaced by one marker, named by the most specific kind."""
    runs: list[Span] = []
    for start, end, kind in sorted(spans):
        if runs and start < runs[-1][1]:
            first, last, other = runs.pop()
            runs.append((first, max(last, end), min(kind, other, key=RANK.__getitem__)))
        else:
            runs.append((start, end, kind))
    pieces: list[bytes] = []
    kept = 0
    for start, end, kind in runs:
        pieces += data[kept:start], _mark(kind, found).encode()
        kept = end
    return b"".join([*pieces, data[kept:]])
