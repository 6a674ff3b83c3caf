"""Logs the one sentence of an expected error in place of a traceback when a service does not start."""

import sys
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.terminal.run_to_end import EXPECTED


@dataclass(frozen=True, slots=True)
class PlainRefusal:
    """Passes everything on; shortens the message of a failed start to the sentence of an expected error."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers with the app's answer."""

        async def say(message: Message) -> None:
            # it is sent while the error is handled, so the error is at hand
            if message["type"] == "lifespan.startup.failed" and isinstance(error := sys.exception(), EXPECTED):
                message = {**message, "message": str(error)}
            await send(message)

        await self.app(scope, receive, say if scope["type"] == "lifespan" else send)
