"""Reads a body piece by piece, whole or not at all."""

from starlette.types import Receive

from app.edge.intake.errors import BodyIncomplete, BodyTooLarge


def announced(content_length: str | None, most: int) -> int:
    """Returns the bytes that a body may have: its Content-Length, or else ``most``.

    Raises:
        BodyTooLarge: the Content-Length is larger; the body need not be read.
    """
    if content_length is None or not content_length.isdecimal():
        return most
    digits = content_length.lstrip("0") or "0"
    if len(digits) > len(str(most)) or int(digits) > most:
        raise BodyTooLarge(most)
    return int(digits)


async def read_body(receive: Receive, most: int, body: bytearray | None = None) -> bytes:
    """Returns the whole body, whose first bytes may have been read already.

    Raises:
        BodyTooLarge: it grew over ``most`` bytes.
        BodyIncomplete: its sender went away, or was too slow.
    """
    body = bytearray() if body is None else body
    await read_on(receive, most, body)
    if len(body) > most:
        raise BodyTooLarge(most)
    return bytes(body)


async def read_on(receive: Receive, most: int, body: bytearray) -> bool:
    """Adds pieces to a body until it has ended, or has over ``most`` bytes; returns whether it has ended.

    Raises:
        BodyIncomplete: its sender went away, or was too slow.
    """
    while len(body) <= most:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise BodyIncomplete("the request did not arrive whole")
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return True
    return False
