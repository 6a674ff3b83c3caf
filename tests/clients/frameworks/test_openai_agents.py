"""The OpenAI Agents SDK, with a scripted model in the place of OpenAI's: hooks and a session."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

agents = pytest.importorskip("agents", reason="openai-agents is not installed: `make test-frameworks`")

from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from casebank_client import Casebank
from casebank_client.openai_agents import CasebankHooks, CasebankSession
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

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

set_tracing_disabled(disabled=True)


def says(words: str) -> ResponseOutputMessage:
    text = ResponseOutputText(type="output_text", text=words, annotations=[])
    return ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])


def calls(tool: str, arguments: str = "{}") -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(type="function_call", call_id=f"call-{tool}", name=tool, arguments=arguments)


@dataclass
class Scripted(Model):
    """Answers what is written down, one item after the other; an exception is raised."""

    script: list[Any]
    instructions: list[str | None] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)

    async def get_response(self, system_instructions: str | None, input: Any, *_: Any, **__: Any) -> ModelResponse:  # noqa: A002 - theirs
        self.instructions.append(system_instructions)
        self.inputs.append(input)
        answer = self.script.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return ModelResponse(output=[answer], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


@function_tool
def sql(query: str, dialect: str = "") -> str:
    """Runs a query."""
    return RULE if dialect == "mysql" else f"ran {query}"


@function_tool
def broken() -> str:
    """Fails."""
    raise RuntimeError("no such table")


def agent(*script: Any) -> Agent[Any]:
    return Agent("operator", instructions="Be brief.", model=Scripted(list(script)), tools=[sql, broken])


async def run(memory: Casebank, task: str, one: Agent[Any]) -> Any:
    async with CasebankHooks(memory, AGENT, task) as hooks:
        return await Runner.run(one, task, hooks=hooks, run_config=hooks.run_config)


async def test_a_hundred_runs_end_in_cases_joined_to_their_retrievals(banked: Banked):
    for number in range(RUNS):
        last = RuntimeError("the model is away") if fails(number) else says("done")
        one = agent(calls("sql", '{"query": "SELECT 1"}'), last)
        if fails(number):
            with pytest.raises(RuntimeError, match="the model is away"):
                await run(banked.memory, task_of(number), one)
        else:
            await run(banked.memory, task_of(number), one)
    banked.assert_every_run_is_joined_to_its_retrieval(FAILED)


async def test_what_memory_says_reaches_the_model_and_tool_calls_reach_memory(banked: Banked):
    await run(
        banked.memory, "rename a column", agent(calls("sql", '{"query": "ALTER"}'), calls("broken"), says("done"))
    )
    banked.settle()
    again = agent(says("done"))
    await run(banked.memory, "rename a column of another table", again)
    told = again.model.instructions[0]
    assert told.startswith("Be brief.\n\n")
    assert "rename a column" in told
    traces = banked.whole(banked.cases()[0])["tool_traces"]
    assert [(each["tool"], each["input"], each["status"]) for each in traces] == [
        ("sql", {"query": "ALTER"}, "ok"),
        ("broken", {}, "error"),
    ]
    assert traces[0]["output"] == "ran ALTER"


def test_a_synchronous_run_is_kept_as_well(banked: Banked):
    with CasebankHooks(banked.memory, AGENT, "drop a column", judge=lambda _: "partial") as hooks:
        Runner.run_sync(agent(says("done")), "drop a column", hooks=hooks, run_config=hooks.run_config)
    assert [case["outcome"] for case in banked.cases()] == ["partial"]


async def test_an_agent_runs_without_casebank(nobody: Casebank):
    session = CasebankSession(nobody, AGENT, "chat")
    async with CasebankHooks(nobody, AGENT, "rename a column") as hooks:
        one = agent(calls("sql", '{"query": "ALTER"}'), says("done"))
        result = await Runner.run(one, "rename a column", hooks=hooks, run_config=hooks.run_config, session=session)
    await session.clear_session()
    assert result.final_output == "done"


async def test_a_session_brings_the_conversation_back(banked: Banked):
    one = agent(calls("sql", '{"query": "ALTER"}'), says("renamed"), says("twice"))
    for words in ("rename a column", "how often?"):
        await Runner.run(one, words, session=CasebankSession(banked.memory, AGENT, "chat"))
    told = one.model.inputs[-1]
    assert [item.get("type", "message") for item in told] == [
        "message", "function_call", "function_call_output", "message", "message",
    ]  # fmt: skip
    assert told[0]["content"] == "rename a column"
    assert (told[1]["name"], told[1]["arguments"]) == ("sql", '{"query": "ALTER"}')
    assert (told[2]["call_id"], told[2]["output"]) == ("call-sql", "ran ALTER")
    assert told[3]["content"][0]["text"] == "renamed"
    assert told[4]["content"] == "how often?"


async def test_a_session_pops_limits_and_ends(banked: Banked):
    session = CasebankSession(banked.memory, AGENT, "chat")
    assert (await session.get_items(), await session.pop_item()) == ([], None)
    said = [{"role": "user", "content": f"say {number}"} for number in range(3)]
    await session.add_items(said)
    assert await session.get_items() == said
    assert await session.get_items(limit=2) == said[1:]
    assert await session.get_items(limit=0) == []
    assert await session.pop_item() == said[2]
    assert await session.get_items() == said[:2]
    await session.clear_session()
    assert await session.get_items() == []


async def test_a_session_brings_back_several_calls_of_one_turn(banked: Banked):
    called = [{"id": f"c{n}", "type": "function", "function": {"name": "sql", "arguments": str(n)}} for n in (1, 2)]
    asked = {"role": "assistant", "content": "Both.", "tool_calls": called}
    banked.memory.add_turns(AGENT, "chat", [asked, {"role": "tool", "tool_call_id": "c2", "content": "ran"}])
    session = CasebankSession(banked.memory, AGENT, "chat")
    said = [item.get("call_id") or item["content"] for item in await session.get_items()]
    assert said == ["Both.", "c1", "c2", "c2"]
    popped = [await session.pop_item() for _ in range(2)]
    assert [item["type"] for item in popped if item is not None] == ["function_call_output", "function_call"]
    assert [item.get("call_id") or item["content"] for item in await session.get_items()] == ["Both.", "c1"]


OLD = '{"query": "old", "dialect": "mysql"}'


async def test_advice_stands_in_the_message_of_a_failed_tool(banked: Banked):
    banked.learn()
    for advice_s in (60, 0):
        one = agent(calls("sql", OLD), says("done"))
        async with CasebankHooks(banked.memory, AGENT, TASK, advice_s=advice_s) as hooks:
            await Runner.run(one, TASK, hooks=hooks, run_config=hooks.run_config)
        output = one.model.inputs[1][-1]["output"]
        assert output.startswith(RULE)
        assert (MARK in output, "postgres" in output) == (advice_s > 0, advice_s > 0)
    traces = [banked.whole(case)["tool_traces"] for case in banked.cases()]
    assert [each[0]["output"] for each in traces] == [RULE] * 3


async def test_a_hundred_failed_calls_cost_nothing_where_memory_is_of_no_use(
    no_use: Casebank, caplog: pytest.LogCaptureFixture
):
    script = [calls("sql", OLD).model_copy(update={"call_id": f"call-{number}"}) for number in range(100)]
    async with CasebankHooks(no_use, AGENT, TASK, advice_s=0.02) as hooks:
        result = await Runner.run(
            agent(*script, says("done")), TASK, hooks=hooks, run_config=hooks.run_config, max_turns=200
        )
    assert result.final_output == "done"
    assert caplog.text.count(OF_NO_USE) == 100
