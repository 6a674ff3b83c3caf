"""Renames roles and parts of LangChain's, Gemini's and Bedrock's messages as OpenAI and Anthropic name them.

LangChain has a `type` in place of the role, and may wrap the fields in `data` or in the `kwargs` of a constructor.
Gemini has `functionCall` and `functionResponse` in `parts`, Bedrock's Converse API `toolUse` and `toolResult`.
"""

import re
from collections.abc import Mapping
from typing import Any

_ROLES = {
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "model": "assistant",
    "chatbot": "assistant",
    "bot": "assistant",
}
"""Roles of other APIs, in small letters, with their names in chat completions."""
_TYPES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "function"}
"""Types of LangChain's messages, each with the role that chat completions have for it."""
_WORDS = ("text", "message", "body", "input", "prompt", "value")
"""Fields that hold the text of a message that has no `content`, as in Cohere's chat."""
_CAMEL = {"toolCalls": "tool_calls", "toolCallId": "tool_call_id", "isError": "is_error"}
_CLASS = re.compile(r"Message(?:Chunk)?$")
_TEXTS = ("text", "refusal", "paragraph")
_CALLS = ("functionCall", "function_call", "toolUse")
_ANSWERS = ("functionResponse", "function_response", "toolResult")


def renamed(message: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a message with its role and parts named as in OpenAI's and Anthropic's APIs, and all other fields."""
    if "role" in message:
        role = message["role"]
        own = {**message, "role": _ROLES.get(role.lower(), role) if isinstance(role, str) else role}
    else:
        own = _of_langchain(message)
    if own.get("content") is None:
        words = next((own[name] for name in _WORDS if isinstance(own.get(name), str)), None)
        own |= {} if words is None else {"content": words}
    for camel, name in _CAMEL.items():  # as Mistral's client for JavaScript has them
        if own.get(name) is None and camel in own:
            own[name] = own[camel]
    more = own.get("additional_kwargs")
    if isinstance(more, dict):  # of LangChain and LlamaIndex
        own |= {name: more[name] for name in ("tool_calls", "tool_call_id") if more.get(name) and not own.get(name)}
    if isinstance(own.get("content"), dict):
        own["content"] = own["content"].get("parts") or [own["content"]]
    for name in ("content", "parts", "blocks", "items"):
        if isinstance(own.get(name), list):
            own[name] = [_part(part) for part in own[name]]
    return own


def _of_langchain(message: Mapping[str, Any]) -> dict[str, Any]:
    path = message.get("id")
    kind = path[-1] if message.get("type") == "constructor" and isinstance(path, list) and path else message.get("type")
    role = _TYPES.get(_CLASS.sub("", str(kind)).lower())
    if role is None:
        return dict(message)
    fields = next((message[name] for name in ("data", "kwargs") if isinstance(message.get(name), dict)), message)
    return {**fields, "role": role}


def _part(part: object) -> object:
    """Returns a call or an answer of Gemini or Bedrock as Anthropic has it; any other part unchanged."""
    if isinstance(part, dict) and part.get("type") in _TEXTS and not isinstance(part.get("text"), str):
        words = part.get("refusal") or part.get("content") or part.get("value")
        return {**part, "text": words} if isinstance(words, str) else part
    if not isinstance(part, dict) or "type" in part:
        return part
    call, answer = (next((part[name] for name in names if name in part), None) for names in (_CALLS, _ANSWERS))
    if isinstance(call, dict):
        given = call.get("input", call.get("args"))
        return {"type": "tool_use", "id": _id_of(call), "name": call.get("name"), "input": given}
    if not isinstance(answer, dict):
        return part
    output = answer.get("response", answer.get("content"))
    if isinstance(output, list) and len(output) == 1 and isinstance(output[0], dict):
        output = output[0].get("json", output[0].get("text"))
    failed = answer.get("status") == "error" or (isinstance(output, dict) and set(output) == {"error"})
    return {"type": "tool_result", "tool_use_id": _id_of(answer), "content": output, "is_error": failed}


def _id_of(block: Mapping[str, Any]) -> str:
    """Returns the id of a call or of its answer; by the tool's name where there is none, as Gemini's may be."""
    return str(block.get("toolUseId") or block.get("id") or f"function:{block.get('name')}")
