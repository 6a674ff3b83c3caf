"""Walks over nested JSON."""

from collections.abc import Iterator
from itertools import chain, islice


def parts(value: object, *, keys: bool = False, widest: int | None = None) -> Iterator[object]:
    """Yields a value and every value inside it, in order, each object or list before its contents.

    No recursion, because JSON from outside may be nested deeper than Python allows; lazy, so that the caller can stop.

    ``keys``: yield each key of an object, too, before its value. ``widest``: maximum entries of one object or list;
    None: all.
    """
    pending = [value]
    while pending:
        item = pending.pop()
        yield item
        if isinstance(item, dict):
            inside = item if widest is None else dict(islice(item.items(), widest))
            pending += reversed(list(chain.from_iterable(inside.items())) if keys else inside.values())
        elif isinstance(item, list):
            pending += reversed(item if widest is None else item[:widest])
