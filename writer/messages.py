"""The messages of a conversation, in the format of OpenAI's chat completions API, and the tool calls in them.

Source: https://platform.openai.com/docs/api-reference/chat (messages of the roles assistant and tool).
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from writer.blocks import as_chat
from writer.storable import Payload, encodable, line


class Kept(BaseModel):
    """A model that ignores unknown fields, because each provider adds its own to messages."""

    model_config = ConfigDict(extra="ignore")


class FunctionData(Kept):
    """The function that a model called, and its arguments as JSON text."""

    name: line(200)  # type: ignore[valid-type]
    arguments: Annotated[str, AfterValidator(encodable)] = ""


class ToolCall(Kept):
    """A call in an assistant's message."""

    id: line(200)  # type: ignore[valid-type]
    type: Literal["function"] = "function"
    function: FunctionData


class Turn(Kept):
    """One message of the conversation, as chat completions have it; further fields are ignored.

    Messages of Anthropic, of Vercel's AI SDK and of the Responses API are accepted as well: their calls and answers
    become turns of their own. A part that is kept and not read, such as an image, is named in `warnings`.
    """

    role: line(50)  # type: ignore[valid-type]
    content: Payload = None
    name: line(200) | None = None  # type: ignore[valid-type]
    tool_calls: list[ToolCall] | None = Field(default=None, max_length=200)
    tool_call_id: line(200) | None = None  # type: ignore[valid-type]
    refusal: Payload = None
    is_error: bool | None = Field(default=None, description="true: the tool's answer in this message is an error")


Conversation = Annotated[list[Turn], Field(max_length=10_000), BeforeValidator(as_chat)]
"""The turns of a run; messages of other APIs become those of chat completions."""


def tool_traces(messages: Iterable[Turn]) -> list[dict[str, JsonValue]]:
    """Returns the conversation's tool calls in their order, each with its arguments and the tool's answer.

    Arguments are JSON text, which ``ToolTrace`` parses; the output of a call without an answer is None. An answer
    without an id, as Ollama has it, is the answer to the oldest call without one.
    """
    answers: dict[str, deque[dict[str, JsonValue]]] = defaultdict(deque)
    waiting: list[str] = []
    traces: list[tuple[str, dict[str, JsonValue]]] = []
    for message in messages:
        called = message.tool_call_id or (waiting[0] if message.role == "tool" and waiting else None)
        if called is not None:
            status = {"status": "error"} if message.is_error else {}
            answers[called].append({"output": _text(message.content), **status})
            if called in waiting:
                waiting.remove(called)
        for call in message.tool_calls or ():
            traces.append((call.id, {"tool": call.function.name, "input": call.function.arguments}))
            waiting.append(call.id)
    return [{**trace, **(answers[key].popleft() if answers[key] else {"output": None})} for key, trace in traces]


def _text(content: JsonValue) -> JsonValue:
    """Returns the texts of a message's parts, joined; content that is no list, or has other parts, stays as it is."""
    if not isinstance(content, list):
        return content
    texts = [part.get("text") if isinstance(part, Mapping) else None for part in content]
    return "".join(str(text) for text in texts) if texts and all(isinstance(text, str) for text in texts) else content
