"""LangChain's agents, with their own fake model: the middleware."""

import asyncio
from typing import Any

import pytest

pytest.importorskip("langchain", reason="langchain is not installed: `make test-frameworks`")

from casebank_client import Casebank
from casebank_client.failed import ADVICE_S
from casebank_client.langchain import CasebankMiddleware
from langchain.agents import create_agent
from langchain.messages import AIMessage, SystemMessage
from langchain.tools import tool
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.types import Command, interrupt

from tests.clients.frameworks.conftest import (
    AGENT,
    FAILED,
    MARK,
    OF_NO_USE,
    RULE,
    RUNS,
    TASK,
    Banked,
    fails,
    task_of,
)


class Scripted(GenericFakeChatModel):
    """Their fake model, which notes what it was told, and takes tools."""

    heard: list[Any] = []  # noqa: RUF012 - a field of pydantic's

    def bind_tools(self, *_: Any, **__: Any) -> Any:
        return self

    def _generate(self, messages: Any, *rest: Any, **more: Any) -> Any:
        self.heard.append(messages)
        return super()._generate(messages, *rest, **more)


def calls(name: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call-{name}"}])


@tool
def sql(query: str, dialect: str = "") -> str:
    """Runs a query."""
    if query == "broken":
        raise RuntimeError("no such table")
    return RULE if dialect == "mysql" else f"ran {query}"


@tool
def ask() -> str:
    """Asks a person."""
    return interrupt("may I?")


def scripted(memory: Casebank, *script: Any, advice_s: float = ADVICE_S, **more: Any) -> tuple[Any, Scripted]:
    model = Scripted(messages=iter(script), heard=[])
    middleware = CasebankMiddleware(memory, AGENT, advice_s=advice_s)
    agent = create_agent(model, [sql, ask], middleware=[middleware], **{"system_prompt": "Be brief.", **more})
    agent.memory_middleware = middleware
    return agent, model


def asked(task: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": task}]}


async def test_a_hundred_runs_end_in_cases_joined_to_their_retrievals(banked: Banked):
    """Half of them are asynchronous, all at once; the others come one after the other."""
    for number in range(0, RUNS, 2):
        agent, _ = scripted(banked.memory, calls("sql", query="SELECT 1"), "done")
        agent.invoke(asked(task_of(number)))

    async def one(number: int) -> None:
        agent, _ = scripted(banked.memory, calls("sql", query="broken" if fails(number) else "SELECT 1"), "done")
        if fails(number):
            with pytest.raises(RuntimeError, match="no such table"):
                await agent.ainvoke(asked(task_of(number)))
        else:
            await agent.ainvoke(asked(task_of(number)))

    await asyncio.gather(*(one(number) for number in range(1, RUNS, 2)))
    banked.assert_every_run_is_joined_to_its_retrieval(FAILED)


def test_what_memory_says_reaches_the_model_and_tool_calls_reach_memory(banked: Banked):
    agent, _ = scripted(banked.memory, calls("sql", query="ALTER"), calls("sql", query=3.5), "done")
    agent.invoke(asked("rename a column"))
    banked.settle()
    agent, model = scripted(banked.memory, "done")
    agent.invoke(asked("rename a column of another table"))
    told = model.heard[0][0].text
    assert told.startswith("Be brief.\n\n")
    assert "rename a column" in told
    traces = banked.whole(banked.cases()[0])["tool_traces"]
    assert [(each["tool"], each["input"], each["status"]) for each in traces] == [
        ("sql", {"query": "ALTER"}, "ok"),
        ("sql", {"query": 3.5}, "error"),
    ]


def test_memory_is_a_block_of_its_own_where_the_system_prompt_has_blocks(banked: Banked):
    banked.learn()
    brief = {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}
    agent, model = scripted(banked.memory, "done", system_prompt=SystemMessage([brief]))
    agent.invoke(asked(TASK))
    first, memory = model.heard[0][0].content
    assert first == brief
    assert (memory["type"], TASK in memory["text"]) == ("text", True)


def test_an_agent_without_a_system_prompt_is_told_what_memory_says(banked: Banked):
    banked.learn()
    agent, model = scripted(banked.memory, "done", system_prompt=None)
    agent.invoke(asked(TASK))
    assert (model.heard[0][0].type, TASK in model.heard[0][0].content) == ("system", True)


def test_an_interrupted_run_is_one_run_and_no_failure(banked: Banked):
    agent, _ = scripted(banked.memory, calls("ask"), "done", checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "1"}}
    agent.invoke(asked("rename a column"), thread)
    agent.invoke(Command(resume="yes"), thread)
    (case,) = banked.cases()
    assert case["outcome"] == "success"
    assert [each["output"] for each in banked.whole(case)["tool_traces"]] == ["yes"]


def test_a_run_that_hits_the_recursion_limit_is_aborted_when_the_middleware_is_closed(banked: Banked):
    agent, _ = scripted(banked.memory, *(calls("sql", query="SELECT 1") for _ in range(9)))
    with pytest.raises(GraphRecursionError):
        agent.invoke(asked("rename a column"), {"recursion_limit": 5})
    agent.memory_middleware.close()
    assert [case["outcome"] for case in banked.cases()] == ["aborted"]


def test_an_agent_runs_without_casebank(nobody: Casebank):
    agent, _ = scripted(nobody, calls("sql", query="ALTER"), "done")
    assert agent.invoke(asked("rename a column"))["messages"][-1].text == "done"


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
async def test_advice_stands_in_the_message_of_a_failed_tool(banked: Banked, way: str):
    """The tool returns its error as a text, or the arguments do not fit."""
    banked.learn()
    for advice_s in (60, 0):
        failing = calls("sql", query="old", dialect="mysql")
        agent, model = scripted(banked.memory, failing, "done", advice_s=advice_s)
        agent.invoke(asked(TASK)) if way == "invoke" else await agent.ainvoke(asked(TASK))
        message = model.heard[1][-1]
        assert message.text.startswith(RULE)
        assert (MARK in message.text, "postgres" in message.text) == (advice_s > 0, advice_s > 0)
    traces = [banked.whole(case)["tool_traces"] for case in banked.cases()]
    assert [each[0]["output"] for each in traces] == [RULE] * 3


def test_a_hundred_failed_calls_cost_nothing_where_memory_is_of_no_use(
    no_use: Casebank, caplog: pytest.LogCaptureFixture
):
    script = [calls("sql", query="old", dialect="mysql") for _ in range(100)]
    agent, _ = scripted(no_use, *script, "done", advice_s=0.02)
    result = agent.invoke(asked(TASK), {"recursion_limit": 500})
    assert result["messages"][-1].text == "done"
    assert caplog.text.count(OF_NO_USE) == 100
