"""Makes text storable, and refuses JSON that cannot be encoded."""

from pydantic import JsonValue


def storable(text: str) -> str:
    """Returns the text with U+FFFD in place of each NUL character, which Postgres cannot store in a text."""
    return text.replace("\x00", "\ufffd")


def encodable(value: JsonValue) -> JsonValue:
    """Returns the JSON value unchanged.

    Raises:
        ValueError: a string in it has a lone surrogate, which cannot be encoded as UTF-8.
    """
    # not nested.parts: a generator takes twice the time, and every retain waits for this
    pending: list[object] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            try:
                item.encode()
            except UnicodeEncodeError as error:
                raise ValueError("must not contain lone surrogates") from error
        elif isinstance(item, dict):
            pending += [*item.keys(), *item.values()]
        elif isinstance(item, list):
            pending += item
    return value
