"""What the client's README says to write in each framework is five lines at most, and works as it stands."""

import ast
import re
import sys
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from tests.clients.frameworks.conftest import Banked
from tests.paths import ROOT

SNIPPETS = re.findall(
    r"^\*\*(.+?)\*\* .*?```python\n(.+?)```",
    (ROOT / "clients" / "python" / "README.md").read_text().partition("## In a framework")[2],
    flags=re.DOTALL | re.MULTILINE,
)


def openai_agents(_: Path) -> dict[str, Any]:
    pytest.importorskip("agents", reason="openai-agents is not installed: `make test-frameworks`")
    from agents import Runner  # noqa: PLC0415 - may be missing

    from tests.clients.frameworks.test_openai_agents import agent, says  # noqa: PLC0415 - may be missing

    return {"Runner": Runner, "agent": agent(says("done"))}


def langchain(_: Path) -> dict[str, Any]:
    pytest.importorskip("langchain", reason="langchain is not installed: `make test-frameworks`")
    from langchain.agents import create_agent  # noqa: PLC0415 - may be missing

    from tests.clients.frameworks.test_langchain import Scripted, sql  # noqa: PLC0415 - may be missing

    return {"create_agent": create_agent, "model": Scripted(messages=iter(["done"])), "tools": [sql]}


def langgraph(_: Path) -> dict[str, Any]:
    pytest.importorskip("langgraph", reason="langgraph is not installed: `make test-frameworks`")
    return {}


def langgraph_checkpoints(_: Path) -> dict[str, Any]:
    pytest.importorskip("langgraph", reason="langgraph is not installed: `make test-frameworks`")
    from langgraph.graph import START, MessagesState, StateGraph  # noqa: PLC0415 - may be missing

    builder = StateGraph(MessagesState)
    builder.add_node("answer", lambda _: {"messages": [("assistant", "done")]})
    builder.add_edge(START, "answer")
    return {"builder": builder}


def pydantic_ai(_: Path) -> dict[str, Any]:
    pytest.importorskip("pydantic_ai", reason="pydantic-ai-slim is not installed: `make test-frameworks`")
    from pydantic_ai import Agent  # noqa: PLC0415 - may be missing
    from pydantic_ai.models.test import TestModel  # noqa: PLC0415 - may be missing

    return {"Agent": Agent, "model": TestModel()}


def claude_agent_sdk(folder: Path) -> dict[str, Any]:
    pytest.importorskip("claude_agent_sdk", reason="claude-agent-sdk is not installed: `make test-frameworks`")
    from claude_agent_sdk import ClaudeAgentOptions, query  # noqa: PLC0415 - may be missing

    program = folder / "claude"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{Path(__file__).with_name("fake_claude.py")}"\n')
    program.chmod(0o700)
    return {"query": query, "ClaudeAgentOptions": partial(ClaudeAgentOptions, cli_path=str(program))}


NAMES = {
    "OpenAI Agents SDK": openai_agents,
    "LangChain": langchain,
    "LangGraph": langgraph,
    "LangGraph's checkpointer": langgraph_checkpoints,
    "Pydantic AI": pydantic_ai,
    "Claude Agent SDK": claude_agent_sdk,
}


def test_every_framework_of_the_readme_is_tried_here():
    assert [name for name, _ in SNIPPETS] == list(NAMES)


@pytest.mark.parametrize(("name", "snippet"), SNIPPETS)
async def test_five_lines_are_enough(name: str, snippet: str, banked: Banked, tmp_path: Path, monkeypatch: Any):
    monkeypatch.setenv("CLAUDE_AGENT_SDK_SKIP_VERSION_CHECK", "1")
    assert len([line for line in snippet.splitlines() if line.strip()]) <= 5
    names = NAMES[name](tmp_path) | {"memory": banked.memory, "task": "rename a column"}
    code = compile(snippet, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    assert isinstance(code, CodeType)
    if (done := FunctionType(code, names)()) is not None:
        await done
    if name == "LangGraph":
        assert [item.value for item in names["found"]] == [{"system": "metric"}]
        return
    if name == "LangGraph's checkpointer":
        config = {"configurable": {"thread_id": "chat 7"}}
        assert names["graph"].get_state(config).values["messages"] == names["told"]["messages"]
        return
    (case,) = banked.cases()
    assert (case["outcome"], case["retrieval_id"] is not None) == ("success", True)
