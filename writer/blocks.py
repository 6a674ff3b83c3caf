"""Turns messages of other APIs into messages of OpenAI's chat completions.

A message's words and tool calls become one message, and each answer of a tool a message of its own.

Sources: Anthropic's Messages API (content blocks `tool_use` and `tool_result`), Vercel's AI SDK (`parts` of UI
messages, `tool-call` and `tool-result` of model messages), OpenAI's Responses API (items without a role), LangChain
(`tool_calls` with `args`), the older `function_call` of chat completions, and what ``writer.dialects`` renames.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from writer.dialects import renamed

Message = dict[str, Any]

_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use", "tool-call", "tool_call"})
_ANSWERS = frozenset({"tool-result", "mcp_tool_result"})
_CALL_ITEMS = frozenset(
    {
        "function_call",
        "custom_tool_call",
        "mcp_call",
        "local_shell_call",
        "shell_call",
        "apply_patch_call",
        "computer_call",
    }
)
_SILENT = frozenset({"step-start", "reasoning", "redacted_thinking", "thinking", "source-url", "source-document"})
"""Types of message parts that hold no words and no calls; their messages get no warning."""
_NO_WORDS = frozenset({"role", "id", "type", "name", "time", "content", "metadata", "createdAt", "status", "index"})
"""Fields of a user's message that hold no words; another field of a message without content is named in a warning."""
_NAME = re.compile(r"[\w.-]{1,40}")
_FAILED = ("error", "failed")
"""Statuses that mark a tool's answer as an error, in LangChain and the Responses API."""
_ENDED = frozenset({"result", "output-available", "output-error"})


def as_chat(messages: object) -> object:
    """Returns a conversation's messages in the form of chat completions; a value that is no list stays as it is."""
    if not isinstance(messages, list):
        return messages
    chat: list[object] = []
    for message in messages:
        chat += _as_chat(renamed(message)) if isinstance(message, dict) else [message]
    return chat


def unread(contents: Sequence[object]) -> list[str]:
    """Returns a warning for each message with parts that are stored but not read, such as images."""
    warnings = []
    for place, content in enumerate(contents):
        parts = content if isinstance(content, list) else []
        objects = [part for part in parts if isinstance(part, dict) and not isinstance(part.get("text"), str)]
        unread_parts = [part for part in objects if part.get("type") not in _SILENT]
        types = [str(part.get("type") or next(iter(part), "object")) for part in unread_parts]
        names = dict.fromkeys(name if _NAME.fullmatch(name) else "object" for name in types)
        if names:
            warnings.append(f"turn {place + 1}: parts that are kept and not read: {', '.join(names)}")
    return warnings


def _as_chat(message: Message) -> list[Message]:
    kind = str(message.get("type") or "")
    if "role" not in message and kind:
        return _of_item(message, kind)
    chat = dict(message)
    for name in ("name", "tool_call_id"):  # which some frameworks leave empty
        if chat.get(name) == "":
            del chat[name]
    _gather_words(chat)
    function = chat.get("function_call")
    if isinstance(function, dict) and not chat.get("tool_calls"):
        chat["tool_calls"] = [{**function, "id": f"function:{function.get('name')}"}]
    if chat.get("role") == "function" and "tool_call_id" not in chat:
        chat |= {"role": "tool", "tool_call_id": f"function:{chat.get('name')}"}
    chat |= _failure(chat) if chat.get("role") == "tool" else {}
    if isinstance(chat.get("tool_calls"), list):
        chat["tool_calls"] = [_call(call, place) for place, call in enumerate(chat["tool_calls"])]
    content = chat.get("content")
    if isinstance(content, list) and any(_kind_of(part) != "words" for part in content):
        return _split(chat, content)
    return [chat]


def _gather_words(chat: Message) -> None:
    """Puts a message's parts and words, wherever they are, into ``content``."""
    own = [part for name in ("parts", "blocks", "items") for part in _listed(chat.get(name))]
    parts = [*own, *_listed(chat.get("toolInvocations"))]
    if parts and not isinstance(chat.get("content"), list):
        chat["content"] = parts if own else [{"type": "text", "text": chat.get("content") or ""}, *parts]
    if isinstance(chat.get("audio"), dict) and chat.get("content") is None:
        chat["content"] = chat["audio"].get("transcript")
    if chat.get("role") == "user" and chat.get("content") is None:
        chat["content"] = [
            {"type": name, name: chat[name]} for name in chat if name not in _NO_WORDS and chat[name]
        ] or None


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _of_item(item: Message, kind: str) -> list[Message]:
    """Returns the messages for an item of the Responses API that has no role."""
    call_id = str(item.get("call_id") or item.get("id") or kind)
    time = {"time": item["time"]} if "time" in item else {}
    if kind.endswith("_call_output"):
        return [{**time, "role": "tool", "tool_call_id": call_id, "content": item.get("output"), **_failure(item)}]
    if kind not in _CALL_ITEMS:
        return [{**time, "role": "assistant", "content": [{**item, "type": kind}]}]
    called: list[Message] = [{**time, "role": "assistant", "content": None, "tool_calls": [_call(item, 0, call_id)]}]
    if kind == "mcp_call":
        failed = item.get("error") is not None
        answer = {"content": item["error"], "is_error": True} if failed else {"content": item.get("output")}
        called.append({**time, "role": "tool", "tool_call_id": call_id, **answer})
    return called


def _kind_of(part: object) -> Literal["call", "answer", "call and answer", "words"]:
    """Returns what a part of a message is; a call of Vercel's UI messages may hold its own answer."""
    if not isinstance(part, dict):
        return "words"
    kind = part.get("type")
    if kind in _CALLS:
        return "call"
    if kind in _ANSWERS or (isinstance(kind, str) and kind.endswith("tool_result")):
        return "answer"
    return "call and answer" if "toolCallId" in part or isinstance(part.get("toolInvocation"), dict) else "words"


def _split(message: Message, parts: Sequence[Any]) -> list[Message]:
    """Returns messages for the words, calls and answers of one; answers follow calls and precede a user's words."""
    words: list[object] = []
    calls: list[Message] = []
    answers: list[Message] = []
    for part in parts:
        match _kind_of(part):
            case "call":
                calls.append(_call(part, len(calls)))
            case "answer":
                answers.append(_answer(part))
            case "call and answer":
                invocation = part.get("toolInvocation") or part
                calls.append(_call(invocation, len(calls)))
                if invocation.get("state") in _ENDED:
                    answers.append(_answer(invocation))
            case _:
                words.append(part)
    time = {"time": message["time"]} if "time" in message else {}
    own = {**message, "content": words or None}
    if calls:
        own["tool_calls"] = [*_listed(message.get("tool_calls")), *calls]
    spoken = [own] if words or calls else []
    told = [{**time, "role": "tool", **answer} for answer in answers]
    return [*spoken, *told] if calls else [*told, *spoken]


def _call(call: Any, place: int, call_id: str = "") -> Any:
    """Returns a call in the form of chat completions; anything but an object is returned unchanged."""
    if not isinstance(call, dict):
        return call
    function = call.get("function") or call.get("custom") or call
    if not isinstance(function, dict):
        return call
    kind = str(call.get("type") or "")
    name = function.get("name") or function.get("toolName") or kind.removeprefix("tool-").removesuffix("_call") or None
    names = ("arguments", "input", "args", "rawInput", "action", "operation")
    arguments = next((function[each] for each in names if function.get(each) is not None), "")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    own = call_id or call.get("id") or call.get("toolCallId") or f"call:{place + 1}"
    return {"id": own, "function": {"name": name, "arguments": arguments}}


def _answer(part: Mapping[str, Any]) -> Message:
    """Returns the fields of a tool's message for an answer in a part."""
    call_id = part.get("tool_use_id") or part.get("toolCallId") or part.get("tool_call_id")
    names = ("errorText", "content", "output", "result")
    output = next((part[name] for name in names if part.get(name) is not None), None)
    failure = _failure(part)
    if isinstance(output, dict) and set(output) >= {"type", "value"}:  # Vercel's model messages
        failure |= _failure({"is_error": str(output["type"]).startswith("error")})
        output = output["value"]
    return {"tool_call_id": call_id, "content": output, **failure}


def _failure(answer: Mapping[str, Any]) -> Message:
    """Returns the field of a tool's message that tells of an error; empty if the answer tells of none."""
    told = answer.get("is_error") is True or answer.get("isError") is True
    failed = told or answer.get("state") == "output-error" or answer.get("status") in _FAILED
    return {"is_error": True} if failed else {}
