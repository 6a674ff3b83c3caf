"""Finds secrets and personal data in a text, and replaces each by a mark.

RE2 runs the patterns of token formats, assignments, and credentials in headers and URLs in linear time. The set of all
rules scans a text once, and only the rules that it reports are run one by one.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass

from writer.privacy import engine, layouts
from writer.privacy.checks import QUOTES, check_of
from writer.privacy.disguises import Revealed, encoded, revealed
from writer.privacy.json_text import whole_number
from writer.privacy.patterns import PERSONAL, RANK
from writer.privacy.rules import DISGUISED, ENCODED, NAMED, RULES, TOKENLIKE, signs

MOST_CANDIDATES = 10_000  # candidates of one rule in one text; the text after them is removed, not trusted
MOST_PASSES = 8  # a replacement may uncover a neighbour; only a crafted text needs more passes
FEW = 20  # finds of the rules
SHORTEST = 6  # no rule matches less: a@b.co
MOST_ENCODINGS = 3  # of base64 in base64

PERSONAL_PLACES = frozenset(place for place, (kind, _) in enumerate(RULES) if kind in PERSONAL)
SECRET_PLACES = frozenset(range(len(RULES))) - PERSONAL_PLACES
_CONTINUED = bytes(range(0x80, 0xC0))

Span = tuple[int, int, str]


def marked(text: str) -> tuple[str, Counter[str]]:
    """Returns the text with `[REDACTED:kind]` in place of each secret and personal datum, and their numbers by kind.

    It searches the new text again until nothing is found, so that a second call would change nothing.
    """
    counts: Counter[str] = Counter()
    if len(text) < SHORTEST:
        return text, counts
    seen = _Seen.of(text)
    for _ in range(MOST_PASSES):
        before = counts.total()
        # Secrets go first: an e-mail address inside a connection string must not cut it in two.
        for find in (_secrets, _personal):
            if spans := list(find(seen)):
                seen = _Seen.of(_replace(seen.data, spans, counts).decode("utf-8", "surrogatepass"))
        if counts.total() == before:
            return seen.text, counts
    return "[REDACTED:unread]", Counter(unread=1)


def mark(kind: str, counts: Counter[str]) -> str:
    """Returns the mark that replaces a secret of this kind in a text, and adds one to the kind's count."""
    kind = kind.partition("/")[0]
    counts[kind] += 1
    return f"[REDACTED:{kind}]"


@dataclass(frozen=True, slots=True)
class _Seen:
    """A text, its bytes, the rules that can match it, and the signs in it that require a closer look."""

    text: str
    data: bytes
    places: Sequence[int]
    looks: Container[str]

    @classmethod
    def of(cls, text: str) -> "_Seen":
        """Returns the text with its signs."""
        data = text.encode("utf-8", "surrogatepass")
        return cls(text, data, *signs(data))


def _secrets(seen: _Seen, depth: int = MOST_ENCODINGS) -> Iterator[Span]:
    """Yields the start, end and kind of each secret, in bytes: plain, disguised, or encoded."""
    text, data, looks = seen.text, seen.data, seen.looks
    spans = list(_by_rules(data, seen.places, SECRET_PLACES))
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
        yield from _in_bytes(text, list(_behind(plain, list(_secrets(_Seen.of(plain.text), 0)))))
    if ENCODED in looks and depth:
        insides = (
            (start, end, next(_secrets(_Seen.of(plain), depth - 1), None)) for start, end, plain in encoded(text)
        )
        yield from _in_bytes(text, [(start, end, inside[2]) for start, end, inside in insides if inside])


def _personal(seen: _Seen, depth: int = 1) -> Iterator[Span]:
    """Yields the start, end and kind of each find of personal data, in bytes."""
    yield from _by_rules(seen.data, seen.places, PERSONAL_PLACES)
    if DISGUISED in seen.looks and depth and (plain := revealed(seen.text)):
        yield from _in_bytes(seen.text, list(_behind(plain, list(_personal(_Seen.of(plain.text), 0)))))


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
        first, last, quote = whole_number(data, start, end)
        pieces += data[kept:first], quote, mark(kind, counts).encode(), quote
        kept = last
    return b"".join([*pieces, data[kept:]])
