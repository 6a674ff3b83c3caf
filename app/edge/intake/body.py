"""A body as it comes in, piece by piece, whole or not at all."""

from starlette.types import Receive

from app.edge.intake.errors import BodyIncomplete, BodyTooLarge


def announced(content_length: str | None, most: int) -> int:
    """Returns how many bytes a body has room for: as many as it announces, or else the most that it may have.

    Raises:
        BodyTooLarge: it announces more; nothing of it need be read.
    """
    if content_length is None or not content_length.isdecimal():
        return most
    digits = content_length.lstrip("0") or "0"
    if len(digits) > len(str(most)) or int(digits) > most:
        raise BodyTooLarge(most)
    return int(digits)


async def read_body(receive: Receive, most: int) -> bytes:
    """Returns the whole body.

    Raises:
        BodyTooLarge: it grew over ``most`` bytes.
        BodyIncomplete: its sender went away, or was too slow.
    """
    body = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise BodyIncomplete("the request did not arrive whole")
        body += message.get("body", b"")
        if len(body) > most:
            raise BodyTooLarge(most)
        more = message.get("more_body", False)
    return bytes(body)
