"""Recall, precision and speed of redaction."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.measure import Measurement
from bench.secrets.everyday import disguised, everyday
from bench.secrets.harmless import harmless
from bench.secrets.tokens import assigned, bare
from writer.privacy import engine
from writer.privacy.redact import redact_text

SEED = 7
EACH = 2
HARMLESS_EACH = 60
DENSE_BYTES = 200_000
SHORT = 12

Item = tuple[str, str, str]


def is_gone(secret: str, clean: str) -> bool:
    """Returns whether the secret's end, and with it the secret, is no longer in the text."""
    return secret[-SHORT:] not in clean


def is_out_of_disguise(hidden: str, clean: str) -> bool:
    """Returns whether the middle of a disguised secret is no longer in the text."""
    return hidden[len(hidden) // 3 : 2 * len(hidden) // 3] not in clean


async def secrets(_home: Path) -> list[Measurement]:
    """Measures recall of tokens, everyday forms and disguises, precision on harmless texts, and time."""
    engine.warm_up()
    kinds: list[tuple[str, Iterator[Item], Callable[[str, str], bool], float]] = [
        ("tokens of providers, bare", bare(random.Random(SEED), EACH), is_gone, 0.97),
        ("tokens of providers, assigned", assigned(random.Random(SEED), EACH), is_gone, 0.97),
        ("everyday forms", everyday(random.Random(SEED), EACH), is_gone, 0.9),
        ("in disguise", disguised(random.Random(SEED), 10 * EACH), is_out_of_disguise, 0.9),
    ]
    measured = [_recall(name, list(items), gone, aim) for name, items, gone, aim in kinds]
    return [*measured, *_harmless(), _dense()]


def _recall(name: str, items: Sequence[Item], gone: Callable[[str, str], bool], aim: float) -> Measurement:
    missed = Counter(family for family, text, secret in items if not gone(secret, redact_text(text)[0]))
    share = 1 - missed.total() / len(items)
    return Measurement(f"secrets taken out: {name}", share, "", _told(missed, len(items)), aim=aim, at_least=True)


def _told(families: Counter[str], texts: int) -> str:
    rest = ", ".join(f"{family} {count}" for family, count in families.most_common(6))
    return f"{engine.name()}; {texts} texts" + (f"; missed or touched: {rest}" if rest else "")


def _harmless() -> list[Measurement]:
    items = list(harmless(random.Random(SEED), HARMLESS_EACH))
    touched: Counter[str] = Counter()
    took: list[float] = []
    for family, text in items:
        begun = time.process_time()
        clean, _ = redact_text(text)
        took.append(1_000 * (time.process_time() - begun))
        touched[family] += clean != text
    took.sort()
    left = 1 - touched.total() / len(items)
    detail = _told(+touched, len(items))
    return [
        Measurement("harmless look-alikes left alone", left, "", detail, aim=0.95, at_least=True),
        Measurement("redaction of a harmless text, median", took[len(took) // 2], "ms", "of processor time"),
        Measurement("redaction of a harmless text, 99th percentile", took[len(took) * 99 // 100], "ms", ""),
    ]


def _dense() -> Measurement:
    """Returns the speed on a text with a secret every few words."""
    rng = random.Random(SEED)
    text = ""
    while len(text) < DENSE_BYTES:
        text += "\n".join(text for _, text, _ in assigned(rng, 1))
    begun = time.process_time()
    redact_text(text)
    return Measurement("text dense with secrets", len(text) / 1e6 / (time.process_time() - begun), "MB/s", "")
