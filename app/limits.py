"""Refuses a body over the limit while it arrives, before anything is parsed."""

from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.problems import Kind, problem

TOO_LARGE = Kind("body-too-large", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)


class _TooLarge(Exception):
    """The body grew over the limit."""


class BodyLimit:
    """ASGI middleware: a body of more than ``max_bytes`` is answered with 413."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self.app = app
        self.max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves the request, counting the bytes of its body."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            body = await self._read(receive)
        except _TooLarge:
            answer = problem(TOO_LARGE, f"a request may have at most {self.max_bytes} bytes", max_bytes=self.max_bytes)
            await answer(scope, receive, send)
            return
        messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return messages.pop() if messages else await receive()

        await self.app(scope, replay, send)

    async def _read(self, receive: Receive) -> bytes:
        parts: list[bytes] = []
        size = 0
        more = True
        while more:
            message = await receive()
            part = message.get("body", b"")
            size += len(part)
            if size > self.max_bytes:
                raise _TooLarge
            parts.append(part)
            more = message.get("more_body", False)
        return b"".join(parts)
