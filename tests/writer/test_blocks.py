"""Messages of other APIs: their calls become tool traces, their words stay whose they are."""

from typing import Any

import pytest

from writer.blocks import unread
from writer.memories import text_of_turn
from writer.run import FinishedRun

Traces = list[tuple[str, Any, Any, str]]


def run(turns: list[dict[str, Any]]) -> FinishedRun:
    return FinishedRun.model_validate({"agent": "a", "task": "t", "turns": turns})


def traces(finished: FinishedRun) -> Traces:
    return [(trace.tool, trace.input, trace.output, trace.status) for trace in finished.tool_traces]


def called(name: str = "kubectl", arguments: str = '{"args": "get pods"}', **more: Any) -> dict[str, Any]:
    return {
        "role": "assistant",
        "tool_calls": [{"id": "c", "function": {"name": name, "arguments": arguments}}],
        **more,
    }


USE = {"type": "tool_use", "id": "t1", "name": "kubectl", "input": {"args": "get pods"}}
USE_OF_LANGCHAIN = {"name": "kubectl", "args": {"args": "get pods"}, "id": "c", "type": "tool_call"}
WORKED: Traces = [("kubectl", {"args": "get pods"}, "boom", "ok")]
FAILED: Traces = [("kubectl", {"args": "get pods"}, "boom", "error")]
CONVERSATIONS: dict[str, tuple[list[dict[str, Any]], Traces]] = {
    "Anthropic": (
        [
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Wait."}, USE],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": "boom"}],
            },
        ],
        FAILED,
    ),
    "Anthropic, an answer in parts": (
        [
            {"role": "assistant", "content": [USE]},
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "boom"}]}
                ],
            },
        ],
        WORKED,
    ),
    "Anthropic, a tool of the server": (
        [
            {
                "role": "assistant",
                "content": [
                    {**USE, "type": "server_tool_use"},
                    {"type": "web_search_tool_result", "tool_use_id": "t1", "content": "boom"},
                ],
            }
        ],
        WORKED,
    ),
    "Vercel, a UI message": (
        [
            {
                "id": "m1",
                "role": "assistant",
                "parts": [
                    {"type": "step-start"},
                    {
                        "type": "tool-kubectl",
                        "toolCallId": "c",
                        "state": "output-error",
                        "input": {"args": "get pods"},
                        "errorText": "boom",
                    },
                    {"type": "text", "text": "It failed."},
                ],
            }
        ],
        FAILED,
    ),
    "Vercel, a dynamic tool": (
        [
            {
                "role": "assistant",
                "parts": [
                    {
                        "type": "dynamic-tool",
                        "toolName": "kubectl",
                        "toolCallId": "c",
                        "state": "output-available",
                        "input": {"args": "get pods"},
                        "output": "boom",
                    }
                ],
            }
        ],
        WORKED,
    ),
    "Vercel, an older UI message": (
        [
            {
                "role": "assistant",
                "content": "",
                "toolInvocations": [
                    {
                        "state": "result",
                        "toolCallId": "c",
                        "toolName": "kubectl",
                        "args": {"args": "get pods"},
                        "result": "boom",
                    }
                ],
            }
        ],
        WORKED,
    ),
    "Vercel, a part with an invocation": (
        [
            {
                "role": "assistant",
                "content": "",
                "parts": [
                    {
                        "type": "tool-invocation",
                        "toolInvocation": {
                            "state": "result",
                            "toolCallId": "c",
                            "toolName": "kubectl",
                            "args": {"args": "get pods"},
                            "result": "boom",
                        },
                    }
                ],
            }
        ],
        WORKED,
    ),
    "Vercel, model messages": (
        [
            {
                "role": "assistant",
                "content": [
                    {"type": "tool-call", "toolCallId": "c", "toolName": "kubectl", "input": {"args": "get pods"}}
                ],
            },
            {
                "role": "tool",
                "content": [
                    {
                        "type": "tool-result",
                        "toolCallId": "c",
                        "toolName": "kubectl",
                        "output": {"type": "error-text", "value": "boom"},
                    }
                ],
            },
        ],
        FAILED,
    ),
    "the Responses API": (
        [
            {"type": "reasoning", "id": "r", "summary": []},
            {
                "type": "function_call",
                "id": "f",
                "call_id": "c",
                "name": "kubectl",
                "arguments": '{"args": "get pods"}',
            },
            {"type": "function_call_output", "call_id": "c", "output": "boom"},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
            },
        ],
        WORKED,
    ),
    "the Responses API, a server's tool": (
        [{"type": "mcp_call", "id": "m", "name": "kubectl", "arguments": '{"args": "get pods"}', "error": "boom"}],
        FAILED,
    ),
    "the Responses API, an answer that is an error": (
        [
            {"type": "function_call", "call_id": "c", "name": "kubectl", "arguments": '{"args": "get pods"}'},
            {"type": "function_call_output", "call_id": "c", "output": "boom", "is_error": True},
        ],
        FAILED,
    ),
    "chat completions, an answer that is an error": (
        [called(), {"role": "tool", "tool_call_id": "c", "content": "boom", "isError": True}],
        FAILED,
    ),
    "LangChain, an answer that is an error": (
        [called(), {"role": "tool", "tool_call_id": "c", "content": "boom", "status": "error"}],
        FAILED,
    ),
    "an answer with a status of another kind": (
        [called(), {"role": "tool", "tool_call_id": "c", "content": "boom", "status": {"code": 1}}],
        WORKED,
    ),
    "LangChain": (
        [
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"name": "kubectl", "args": {"args": "get pods"}, "id": "c", "type": "tool_call"}],
            },
            {"role": "tool", "tool_call_id": "c", "content": "boom"},
        ],
        WORKED,
    ),
    "LangChain's own JSON": (
        [
            {
                "type": "ai",
                "content": "",
                "tool_calls": [{"name": "kubectl", "args": {"args": "get pods"}, "id": "c", "type": "tool_call"}],
                "invalid_tool_calls": [],
            },
            {"type": "tool", "tool_call_id": "c", "content": "boom", "status": "error", "artifact": None},
        ],
        FAILED,
    ),
    "LangChain, fields in data": (
        [
            {
                "type": "AIMessageChunk",
                "data": {"content": "", "type": "AIMessageChunk", "tool_calls": [USE_OF_LANGCHAIN]},
            },
            {"type": "tool", "data": {"tool_call_id": "c", "content": "boom", "type": "tool"}},
        ],
        WORKED,
    ),
    "LangChain, constructors": (
        [
            {
                "lc": 1,
                "type": "constructor",
                "id": ["langchain", "schema", "messages", "AIMessage"],
                "kwargs": {"content": "", "type": "ai", "tool_calls": [USE_OF_LANGCHAIN]},
            },
            {
                "lc": 1,
                "type": "constructor",
                "id": ["langchain", "schema", "messages", "ToolMessage"],
                "kwargs": {"tool_call_id": "c", "content": "boom", "type": "tool"},
            },
        ],
        WORKED,
    ),
    "Gemini": (
        [
            {"role": "model", "parts": [{"functionCall": {"name": "kubectl", "args": {"args": "get pods"}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "kubectl", "response": {"error": "boom"}}}]},
        ],
        [("kubectl", {"args": "get pods"}, {"error": "boom"}, "error")],
    ),
    "Bedrock": (
        [
            {
                "role": "assistant",
                "content": [
                    {"text": "Wait."},
                    {"toolUse": {"toolUseId": "t", "name": "kubectl", "input": USE["input"]}},
                ],
            },
            {
                "role": "user",
                "content": [{"toolResult": {"toolUseId": "t", "content": [{"text": "boom"}], "status": "error"}}],
            },
        ],
        FAILED,
    ),
    "a call without an id": (
        [{"role": "assistant", "tool_calls": [{"function": {"name": "kubectl", "arguments": {"args": "get pods"}}}]}],
        [("kubectl", {"args": "get pods"}, None, "ok")],
    ),
    "the older function_call": (
        [
            {
                "role": "assistant",
                "content": None,
                "function_call": {"name": "kubectl", "arguments": '{"args": "get pods"}'},
            },
            {"role": "function", "name": "kubectl", "content": "boom"},
        ],
        WORKED,
    ),
    "a custom tool": (
        [
            {
                "role": "assistant",
                "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "kubectl", "input": "get pods"}}],
            },
            {"role": "tool", "tool_call_id": "c", "content": "boom"},
        ],
        [("kubectl", "get pods", "boom", "ok")],
    ),
    "Ollama, without ids": (
        [
            {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": name, "arguments": {}}}]}
            if name
            else {"role": "tool", "content": "boom", "tool_name": "kubectl"}
            for name in ("kubectl", "", "kubectl", "")
        ],
        [("kubectl", {}, "boom", "ok")] * 2,
    ),
    "Mistral's client for JavaScript": (
        [
            {
                "role": "assistant",
                "content": "",
                "toolCalls": [{"id": "c", "function": {"name": "kubectl", "arguments": {"args": "get pods"}}}],
            },
            {"role": "tool", "name": "kubectl", "content": "boom", "toolCallId": "c"},
        ],
        WORKED,
    ),
    "LlamaIndex": (
        [
            {"role": "assistant", "content": None, "additional_kwargs": {"tool_calls": called()["tool_calls"]}},
            {"role": "tool", "content": "boom", "additional_kwargs": {"name": "kubectl", "tool_call_id": "c"}},
        ],
        WORKED,
    ),
    "the Responses API, a shell": (
        [
            {"type": "local_shell_call", "call_id": "c", "action": {"command": ["ls"]}},
            {"type": "local_shell_call_output", "call_id": "c", "output": "boom"},
        ],
        [("local_shell", {"command": ["ls"]}, "boom", "ok")],
    ),
}


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_calls_and_answers_are_read(name: str):
    turns, expected = CONVERSATIONS[name]
    finished = run([{"role": "user", "content": "Why is it down?"}, *turns])
    assert traces(finished) == expected
    assert unread([turn.content for turn in finished.turns]) == []
    assert [turn.content for turn in finished.turns if turn.role == "user"] == ["Why is it down?"]


@pytest.mark.parametrize(
    "message",
    [
        {"type": "human", "content": "Why?"},
        {"type": "human", "data": {"content": "Why?", "type": "human"}},
        {"lc": 1, "type": "constructor", "id": ["langchain", "HumanMessage"], "kwargs": {"content": "Why?"}},
        {"role": "human", "content": "Why?"},
        {"role": "USER", "message": "Why?"},
        {"role": "user", "text": "Why?"},
        {"role": "user", "body": "Why?"},
        {"role": "user", "prompt": "Why?"},
    ],
)
def test_a_persons_message_is_the_users_by_whatever_name(message: dict[str, Any]):
    (turn,) = run([message]).turns
    assert (turn.role, turn.content) == ("user", "Why?")


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": {"content_type": "text", "parts": ["Why?"]}},
        {"role": "user", "content": [{"type": "text", "content": "Why?"}]},
        {"role": "user", "blocks": [{"block_type": "text", "text": "Why?"}]},
        {"role": "user", "items": [{"content_type": "text", "text": "Why?"}]},
        {"role": "user", "content": [{"type": "refusal", "refusal": "Why?"}]},
    ],
)
def test_words_in_parts_are_read_and_need_no_warning(message: dict[str, Any]):
    (turn,) = run([message]).turns
    assert text_of_turn(turn.model_dump()) == "user: Why?"
    assert unread([turn.content]) == []


def test_what_a_user_says_beside_an_answer_stays_the_users_and_comes_after_it():
    answer = {"type": "tool_result", "tool_use_id": "t1", "content": "boom"}
    finished = run(
        [
            {"role": "assistant", "content": [USE]},
            {"role": "user", "content": [answer, {"type": "text", "text": "And?"}]},
        ]
    )
    assert [(turn.role, turn.content) for turn in finished.turns[1:]] == [
        ("tool", "boom"),
        ("user", [{"type": "text", "text": "And?"}]),
    ]


FIELDS_OF_OPENAI = {
    "refusal": None,
    "annotations": [],
    "audio": None,
    "function_call": None,
    "reasoning_content": "hm",
    "reasoning": {},
    "id": "m1",
    "index": 0,
    "tool_calls": None,
}


def test_fields_that_providers_add_are_ignored():
    answer = {"role": "assistant", "content": "Done.", **FIELDS_OF_OPENAI}
    assert run([answer]).turns[0].model_dump(exclude_none=True) == {"role": "assistant", "content": "Done."}
    call = called(**{name: value for name, value in FIELDS_OF_OPENAI.items() if name != "tool_calls"})
    call["tool_calls"][0] |= {"index": 0, "extra_content": {"google": {}}, "type": "function"}
    assert [trace.tool for trace in run([call]).tool_traces] == ["kubectl"]


def test_what_was_said_in_audio_is_read():
    answer = {"role": "assistant", "content": None, "audio": {"id": "x", "data": "UklGRg", "transcript": "It is down."}}
    assert run([answer]).turns[0].content == "It is down."


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ([{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "x"}}], "image_url"),
        ([{"type": "image", "source": {}}, {"type": "document", "source": {}}], "image, document"),
        ([{"type": "x" * 99}], "object"),
        ([{"inlineData": {"mimeType": "image/png", "data": ""}}], "inlineData"),
    ],
)
def test_a_warning_names_the_parts_that_are_kept_and_not_read(content: list[Any], names: str):
    finished = run([{"role": "user", "content": "hi"}, {"role": "user", "content": content}])
    assert unread([turn.content for turn in finished.turns]) == [f"turn 2: parts that are kept and not read: {names}"]
    assert finished.turns[1].content == content


def test_a_warning_names_the_fields_of_a_users_message_without_words():
    (turn,) = run([{"role": "user", "id": "m1", "utterance": "hi"}]).turns
    assert unread([turn.content]) == ["turn 1: parts that are kept and not read: utterance"]
    assert turn.content == [{"type": "utterance", "utterance": "hi"}]
