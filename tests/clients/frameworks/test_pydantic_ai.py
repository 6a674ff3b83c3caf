"""Pydantic AI, with their own function model: the capability."""

import asyncio
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="pydantic-ai-slim is not installed: `make test-frameworks`")

from casebank_client import Casebank
from casebank_client.failed import ADVICE_S
from casebank_client.pydantic_ai import CasebankMemory
from pydantic_ai import Agent, ModelRetry, UsageLimits
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import FunctionModel

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


def agent(
    memory: Casebank, heard: list[Any], *queries: str, advice_s: float = ADVICE_S, raised: bool = False
) -> Agent[None, str]:
    """An agent that runs the queries one after the other, and says that it is done."""

    def answer(messages: Any, info: Any) -> ModelResponse:
        heard.append(info.instructions)
        step = sum(isinstance(message, ModelResponse) for message in messages)
        if step < len(queries):
            arguments = {"query": queries[step], "dialect": "mysql" if queries[step].startswith("old") else ""}
            return ModelResponse([ToolCallPart("sql", arguments, f"call-{step}")])
        return ModelResponse([TextPart("done")])

    one = Agent(
        FunctionModel(answer),
        instructions="Be brief.",
        capabilities=[CasebankMemory(memory, AGENT, more={"advice_s": advice_s})],
    )

    @one.tool_plain
    def sql(query: str, dialect: str = "") -> Any:
        if dialect == "mysql" and raised:
            raise ModelRetry(RULE)
        if dialect == "mysql":
            return {"error": RULE} if query == "old as a value" else RULE
        if query == "again":
            raise ModelRetry("say it otherwise")
        if query == "broken":
            raise RuntimeError("no such table")
        return f"ran {query}"

    return one


async def test_a_hundred_runs_end_in_cases_joined_to_their_retrievals(banked: Banked):
    """Ten at once, on one agent each."""

    async def run(number: int) -> None:
        one = agent(banked.memory, [], "broken" if fails(number) else "SELECT 1")
        if fails(number):
            with pytest.raises(RuntimeError, match="no such table"):
                await one.run(task_of(number))
        else:
            await one.run(task_of(number))

    for first in range(0, RUNS, 10):
        await asyncio.gather(*(run(number) for number in range(first, first + 10)))
    banked.assert_every_run_is_joined_to_its_retrieval(FAILED)


async def test_runs_of_one_agent_at_once_are_kept_apart(banked: Banked):
    one = agent(banked.memory, [], "SELECT 1")
    await asyncio.gather(*(one.run(task_of(number)) for number in range(5)))
    cases = banked.cases()
    assert [case["task"] for case in cases] == [task_of(number) for number in range(5)]
    assert [len(banked.whole(case)["tool_traces"]) for case in cases] == [1] * 5


def test_what_memory_says_reaches_the_model_and_tool_calls_reach_memory(banked: Banked):
    agent(banked.memory, [], "ALTER", "again").run_sync("rename a column")
    banked.settle()
    heard: list[Any] = []
    agent(banked.memory, heard).run_sync(["rename a column of another table"])
    assert heard[0].startswith("Be brief.\n\n")
    assert "rename a column" in heard[0]
    traces = banked.whole(banked.cases()[0])["tool_traces"]
    assert [(each["tool"], each["input"], each["output"], each["status"]) for each in traces] == [
        ("sql", {"query": "ALTER", "dialect": ""}, "ran ALTER", "ok"),
        ("sql", {"query": "again", "dialect": ""}, "say it otherwise", "error"),
    ]


def test_a_run_without_a_prompt_is_one_of_the_last_prompt_of_its_messages(banked: Banked):
    said = [
        ModelRequest([UserPromptPart("rename a column")]),
        ModelResponse([TextPart("which?")]),
        ModelRequest([UserPromptPart(["the column", "of the orders"])]),
    ]
    agent(banked.memory, []).run_sync(message_history=said)
    assert [case["task"] for case in banked.cases()] == ["the column\nof the orders"]


def test_an_agent_runs_without_casebank(nobody: Casebank):
    assert agent(nobody, [], "ALTER").run_sync("rename a column").output == "done"


@pytest.mark.parametrize(
    ("query", "raised"), [("old", False), ("old as a value", False), ("old", True)], ids=["text", "value", "retry"]
)
async def test_advice_stands_in_the_message_of_a_failed_tool(banked: Banked, query: str, raised: object):
    """The tool returns its error as a text or a value, or asks the model to try again."""
    banked.learn()
    for advice_s in (60, 0):
        result = await agent(banked.memory, [], query, advice_s=advice_s, raised=bool(raised)).run(TASK)
        told = "\n".join(str(part.content) for part in result.all_messages()[2].parts)
        assert RULE in told
        assert (MARK in told, "postgres" in told) == (advice_s > 0, advice_s > 0)
    noted = {"error": RULE} if query == "old as a value" else RULE
    traces = [banked.whole(case)["tool_traces"] for case in banked.cases()]
    assert [each[0]["output"] for each in traces if len(each) == 1] == [noted] * 2


async def test_a_hundred_failed_calls_cost_nothing_where_memory_is_of_no_use(
    no_use: Casebank, caplog: pytest.LogCaptureFixture
):
    limits = UsageLimits(request_limit=200)
    result = await agent(no_use, [], *["old"] * 100, advice_s=0.02).run(TASK, usage_limits=limits)
    assert result.output == "done"
    assert caplog.text.count(OF_NO_USE) == 100
