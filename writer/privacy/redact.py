"""Redaction of secrets and personal data, before anything is stored, logged or embedded.

The fixed token formats come from the `detect_secrets` library; the patterns here add newer formats, assignments, and
credentials in headers and URLs. RE2 runs all of them in linear time. The set of all rules scans a text once, and only
the rules that it reports are run one by one.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar, cast

from writer.privacy import engine, layouts
from writer.privacy.checks import CHECKS, PATH, QUOTES, check_of, is_real
from writer.privacy.disguises import Revealed, encoded, revealed
from writer.privacy.patterns import PERSONAL, SENSITIVE_KEY
from writer.privacy.rules import DISGUISED, ENCODED, NAMED, RANK, RULES, TOKENLIKE, signs

Json = TypeVar("Json")

MOST_CANDIDATES = 10_000  # candidates of one rule in one text; the text after them is removed, not trusted
MOST_PASSES = 8  # a replacement may uncover a neighbour; only a crafted text needs more passes
FEW = 20  # finds of the rules
MOST_DEPTH = 250  # orjson writes no deeper value
SHORTEST = 6  # no rule matches less: a@b.co

MOST_ENCODINGS = 3  # of base64 in base64

PERSONAL_PLACES = frozenset(place for place, (kind, _) in enumerate(RULES) if kind in PERSONAL)
SECRET_PLACES = frozenset(range(len(RULES))) - PERSONAL_PLACES
SEVERAL = "token/several"  # values under `tokens` or `secrets`, or nested below such a key; not all are secrets
_APART = "\n" * 8  # more white space than any rule spans, so that no rule matches across two texts
_CONTINUED = bytes(range(0x80, 0xC0))

Span = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Redaction:
    """Number of redactions of one kind."""

    kind: str
    count: int


def redact_text(text: str) -> tuple[str, Counter[str]]:
    """Returns the text with each secret replaced by `[REDACTED:kind]`, and the number of redactions of each kind.

    Repeats until a pass finds nothing, so that a second call changes nothing.
    """
    counts: Counter[str] = Counter()
    if len(text) < SHORTEST:
        return text, counts
    for _ in range(MOST_PASSES):
        before = counts.total()
        # Secrets go first: an e-mail address inside a connection string must not cut it in two.
        for find in (_secrets, _personal):
            if spans := list(find(text)):
                data = _replace(text.encode("utf-8", "surrogatepass"), spans, counts)
                text = data.decode("utf-8", "surrogatepass")
        if counts.total() == before:
            return text, counts
    return "[REDACTED:unread]", Counter(unread=1)


def redact(value: Json) -> tuple[Json, list[Redaction]]:
    """Returns the JSON value with its strings and keys redacted, and the redactions by kind, sorted by name.

    The value keeps its shape; only an integer that is a password becomes a text.
    """
    strings = _strings(value)
    if strings is not None:  # one scan of all strings together shows that most runs hold no secret
        data = _APART.join(strings).encode("utf-8", "surrogatepass")
        places, looks = signs(data)
        if not places and looks <= {TOKENLIKE} and not (looks and any(engine.finds(data))):
            return value, []
    counts: Counter[str] = Counter()
    clean = _walk(value, "", counts, MOST_DEPTH)
    return cast("Json", clean), [Redaction(kind, count) for kind, count in sorted(counts.items())]


def _strings(value: object) -> list[str] | None:
    """Returns the strings and keys of a value; None if its depth or a key requires a walk through it."""
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


def _walk(value: object, sensitive: str, counts: Counter[str], depth: int) -> object:
    if isinstance(value, str):
        return _clean(value, sensitive, counts)
    if not depth and isinstance(value, dict | list):
        return _mark("too-deep", counts)
    if isinstance(value, dict):
        around = SEVERAL if sensitive else ""
        named = _sensitive(value.get("name")) or _sensitive(value.get("key"))  # {"name": "DB_PASSWORD", "value": "..."}
        clean: dict[str, object] = {}
        for key, item in value.items():
            name = free = _clean(key, "", counts)
            copy = 1
            while free in clean:  # two addresses as keys must not become one entry
                copy += 1
                free = f"{name} ({copy})"
            clean[free] = _walk(item, _sensitive(key) or (named if key == "value" else "") or around, counts, depth - 1)
        return clean
    if isinstance(value, list):
        return [_walk(item, sensitive, counts, depth - 1) for item in value]
    return _mark(sensitive, counts) if sensitive == "password" and type(value) is int else value


def _sensitive(key: object) -> str:
    """Returns the kind of secret that a key of this name holds, or an empty string."""
    return _sensitive_name(key) if isinstance(key, str) else ""


@lru_cache(maxsize=4096)  # the same few names come in every run
def _sensitive_name(key: str) -> str:
    match = SENSITIVE_KEY.fullmatch(key)
    kind = (match and match.lastgroup) or ""
    if kind == "weak":
        return "password/weak"
    return SEVERAL if kind == "token" and key.endswith(("s", "S")) else kind


def _clean(text: str, sensitive: str, counts: Counter[str]) -> str:
    if _is_secret(text, sensitive):
        return _mark(sensitive, counts)
    clean, finds = redact_text(text)
    if finds and _is_secret(clean, sensitive):  # the rest may look like a secret although the whole did not
        return _mark(sensitive, counts)
    counts.update(finds)
    return clean


def _is_secret(text: str, sensitive: str) -> bool:
    """Returns whether the text, under a key of this kind, is a secret."""
    data = text.encode("utf-8", "surrogatepass") if sensitive else b""
    if not data.strip():
        return False
    if (check := CHECKS.get(f"{sensitive}/key")) is not None:
        return check(data, 0, len(data))
    return not PATH.fullmatch(data) and is_real(data, 0, len(data))


def _mark(kind: str, counts: Counter[str]) -> str:
    kind = kind.partition("/")[0]
    counts[kind] += 1
    return f"[REDACTED:{kind}]"


def _secrets(text: str, depth: int = MOST_ENCODINGS) -> Iterator[Span]:
    """Yields the start, end and kind of each secret, in bytes: plain, disguised, or encoded."""
    data = text.encode("utf-8", "surrogatepass")
    places, looks = signs(data)
    spans = list(_by_rules(data, places, SECRET_PLACES))
    yield from spans
    if TOKENLIKE in looks:
        rest = bytearray(data)
        for start, end, _ in spans if len(spans) > FEW else ():  # the engine is slow on a text with many finds
            rest[start:end] = b" " * (end - start)
        yield from engine.finds(bytes(rest))
    if NAMED in looks:
        yield from (span for span in layouts.finds(data) if check_of(span[2])(data, *span[:2]))
    if DISGUISED in looks and depth and (plain := revealed(text)):
        if plain.end < len(text):
            yield len(text[: plain.end].encode("utf-8", "surrogatepass")), len(data), "unread"
        yield from _in_bytes(text, list(_behind(plain, list(_secrets(plain.text, 0)))))
    if ENCODED in looks and depth:
        insides = ((start, end, next(_secrets(plain, depth - 1), None)) for start, end, plain in encoded(text))
        yield from _in_bytes(text, [(start, end, inside[2]) for start, end, inside in insides if inside])


def _personal(text: str, depth: int = 1) -> Iterator[Span]:
    """Yields the start, end and kind of each find of personal data, in bytes."""
    data = text.encode("utf-8", "surrogatepass")
    places, looks = signs(data)
    yield from _by_rules(data, places, PERSONAL_PLACES)
    if DISGUISED in looks and depth and (plain := revealed(text)):
        yield from _in_bytes(text, list(_behind(plain, list(_personal(plain.text, 0)))))


def _by_rules(data: bytes, places: Iterable[int], wanted: Container[int]) -> Iterator[Span]:
    """Yields the start, end and kind of each find, in bytes; a rejected quoted value is searched again inside."""
    for kind, regex in (RULES[place] for place in places if place in wanted):
        check = check_of(kind)
        position = candidates = 0
        while match := regex.search(data, position):
            candidates += 1
            if candidates > MOST_CANDIDATES:
                yield match.start(), len(data), "unread"
                break
            start, end = next((match.span(i) for i in range(1, regex.groups + 1) if match.end(i) > 0), match.span())
            position = match.end()
            if check(data, start, end):
                yield start, end, kind
            elif match.start() < start and data[start - 1 : start] in QUOTES:
                position = start


def _behind(plain: Revealed, spans: Sequence[Span]) -> Iterator[Span]:
    """Yields spans in characters of the disguised text for spans in bytes of the plain one."""
    data = plain.text.encode("utf-8", "surrogatepass")
    for start, end, kind in _shifted(
        sorted(spans), lambda first, last: len(data[first:last].translate(None, _CONTINUED))
    ):
        yield (*plain.in_disguise(start, end), kind)


def _in_bytes(text: str, spans: Sequence[Span]) -> Iterator[Span]:
    """Returns spans in bytes for spans in characters."""
    if text.isascii():
        return iter(spans)
    return _shifted(sorted(spans), lambda first, last: len(text[first:last].encode("utf-8", "surrogatepass")))


def _shifted(spans: Sequence[Span], measured: Callable[[int, int], int]) -> Iterator[Span]:
    """Returns spans in another measure; `measured` returns the length of a piece in it. Linear also for overlaps."""
    places = sorted({place for start, end, _ in spans for place in (start, end)})
    shifted, before, total = {}, 0, 0
    for place in places:
        total += measured(before, place)
        shifted[place] = total
        before = place
    return ((shifted[start], shifted[end], kind) for start, end, kind in spans)


def _replace(data: bytes, spans: list[Span], counts: Counter[str]) -> bytes:
    """Returns the bytes with each run of overlapping spans replaced by one marker of the most specific kind."""
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
        pieces += data[kept:start], _mark(kind, counts).encode()
        kept = end
    return b"".join([*pieces, data[kept:]])
