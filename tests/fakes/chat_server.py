"""The same server with a language model at POST /v1/chat/completions, which says what it is told, and errs on request.

with ChatServer() as server:
    server.says = lambda record: {"query": "How to …"}   # from the material, to be sent as JSON; a str as it is
    server.script(ChatFault.PROSE, None)                 # what to do with the next requests
    server.refuses = {"response_format"}                 # fields of a request that it answers with a 400
"""

import json
from collections.abc import Callable
from enum import Enum, auto
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from tests.fakes.openai_server import OpenAIServer, as_json, error

PROMPT_TOKENS, COMPLETION_TOKENS = 70, 30
"""What every answer claims to have cost."""


class ChatFault(Enum):
    PROSE = auto()
    FENCED = auto()  # allowed
    THOUGHT = auto()  # allowed: a model that thinks aloud first
    WRONG_SCHEMA = auto()
    EMPTY = auto()
    NULL = auto()
    CUT = auto()
    REFUSAL = auto()
    FILTERED = auto()
    NO_CHOICES = auto()
    NO_USAGE = auto()  # allowed
    ODD_USAGE = auto()  # allowed
    HUGE = auto()


class ChatServer(OpenAIServer):
    """Says what it is told to say."""

    def __init__(self, dimension: int = 64) -> None:
        super().__init__(dimension)
        self.says: Callable[[dict[str, Any]], Any] = lambda _: {}
        self.refuses: set[str] = set()

    def routes(self) -> list[Route]:
        return [*super().routes(), Route("/v1/chat/completions", self.serve(self._chat), methods=["POST"])]

    def reset(self) -> None:
        super().reset()
        self.says, self.refuses = lambda _: {}, set()

    @property
    def asked(self) -> list[dict[str, Any]]:
        """What the language model was sent, and nothing that was for the embedder."""
        return [request.payload for request in self.requests if request.path.endswith("/chat/completions")]

    def _chat(self, payload: dict[str, Any], fault: ChatFault | None) -> Response:
        if refused := self.refuses & payload.keys():
            told = " Use 'max_completion_tokens' instead." if refused == {"max_tokens"} else ""
            return error(400, f"Unsupported parameter: {refused}.{told}")
        said = self.says(material(payload))
        text = said if isinstance(said, str) else json.dumps(said)
        return as_json(DISTORTIONS[fault](text) if fault is not None else completion(text))


def material(payload: dict[str, Any]) -> dict[str, Any]:
    """The record that was sent, out of its fence."""
    told = payload["messages"][1]["content"]
    return json.loads(told.removeprefix("<data>\n").removesuffix("\n</data>"))


def completion(text: str | None, finish_reason: str = "stop", **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": text, **more}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "made-up",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": COMPLETION_TOKENS, "total_tokens": 100},
    }


DISTORTIONS: dict[ChatFault, Callable[[str], dict[str, Any]]] = {
    ChatFault.PROSE: lambda _: completion("Of course! I would be glad to help you with that."),
    ChatFault.FENCED: lambda text: completion(f"Here you are:\n```json\n{text}\n```\nAnything else?"),
    ChatFault.THOUGHT: lambda text: completion(f"<think>An object like {{}}, then.</think>\n{text}"),
    ChatFault.WRONG_SCHEMA: lambda _: completion('{"answer": 42}'),
    ChatFault.EMPTY: lambda _: completion(""),
    ChatFault.NULL: lambda _: completion(None),
    ChatFault.CUT: lambda text: completion(text[: len(text) // 2], "length"),
    ChatFault.REFUSAL: lambda _: completion(None, refusal="I cannot assist with that."),
    ChatFault.FILTERED: lambda _: completion(None, "content_filter"),
    ChatFault.NO_CHOICES: lambda text: completion(text) | {"choices": []},
    ChatFault.NO_USAGE: lambda text: {**completion(text), "usage": None},
    ChatFault.ODD_USAGE: lambda text: {**completion(text), "usage": {"prompt_tokens": -5, "completion_tokens": "lots"}},
    ChatFault.HUGE: lambda text: completion(text + " " * (2 << 20)),
}
