"""Why a service does not start, in the log: the one sentence of an expected error, in place of a traceback."""

import sys
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.terminal.run_to_end import EXPECTED


@dataclass(frozen=True, slots=True)
class PlainRefusal:
    """Passes everything on; of a start that failed as expected, the server is told the sentence alone."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers as the app does."""

        async def say(message: Message) -> None:
            # sent from where the error is handled, so it is at hand
            if message["type"] == "lifespan.startup.failed" and isinstance(error := sys.exception(), EXPECTED):
                message = {**message, "message": str(error)}
            await send(message)

        await self.app(scope, receive, say if scope["type"] == "lifespan" else send)
