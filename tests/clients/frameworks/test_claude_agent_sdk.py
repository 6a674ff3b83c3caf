"""The Claude Agent SDK, with a program in Claude Code's place that speaks its protocol: hooks and the watch."""

import asyncio
import sys
from pathlib import Path

import pytest

pytest.importorskip("claude_agent_sdk", reason="claude-agent-sdk is not installed: `make test-frameworks`")

from casebank_client import Casebank
from casebank_client.claude_agent_sdk import CasebankHooks
from casebank_client.failed import ADVICE_S
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage, query

from tests.clients.frameworks.conftest import AGENT, MARK, OF_NO_USE, RUNS, TASK, Banked, task_of


@pytest.fixture
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The program, as an executable of this Python."""
    monkeypatch.setenv("CLAUDE_AGENT_SDK_SKIP_VERSION_CHECK", "1")
    program = tmp_path / "claude"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -E "{Path(__file__).with_name("fake_claude.py")}"\n')
    program.chmod(0o700)
    return str(program)


async def run(memory: Casebank, claude: str, task: str, advice_s: float = ADVICE_S) -> ResultMessage:
    hooks = CasebankHooks(memory, AGENT, advice_s=advice_s)
    options = ClaudeAgentOptions(hooks=hooks.hooks, cli_path=claude)
    messages = [message async for message in hooks.watch(query(prompt=task, options=options))]
    return messages[-1]


async def test_a_hundred_runs_end_in_cases_joined_to_their_retrievals(banked: Banked, claude: str):
    """Five at once; some end in a result that is an error, some without a result."""
    words = {7: "select limit", 9: "select crash"}
    tasks = [f"{task_of(number)} {words.get(number % 10, 'select')}" for number in range(RUNS)]

    async def one(task: str) -> None:
        if "crash" in task:
            with pytest.raises(Exception, match="exit code"):
                await run(banked.memory, claude, task)
        else:
            assert (await run(banked.memory, claude, task)).is_error == ("limit" in task)

    for first in range(0, RUNS, 5):
        await asyncio.gather(*(one(task) for task in tasks[first : first + 5]))
    cases = banked.cases()
    assert [case["task"] for case in cases] == tasks
    assert len({case["retrieval_id"] for case in cases} - {None}) == RUNS
    bad = {task for task in tasks if "limit" in task or "crash" in task}
    assert {case["task"] for case in cases if case["outcome"] == "failure"} == bad
    assert {case["outcome"] for case in cases if case["task"] not in bad} == {"success"}


async def test_what_memory_says_reaches_the_model_and_tool_calls_reach_memory(banked: Banked, claude: str):
    await run(banked.memory, claude, "rename a column by select broken")
    banked.settle()
    assert "rename a column" in (await run(banked.memory, claude, "rename a column of another table")).result
    whole = banked.whole(banked.cases()[0])
    assert [(each["tool"], each["input"], each["output"], each["status"]) for each in whole["tool_traces"]] == [
        ("sql", {"query": "select"}, "ran it", "ok"),
        ("sql", {"query": "broken"}, "no such table", "error"),
    ]


async def test_a_client_that_stays_is_watched_answer_by_answer(banked: Banked, claude: str):
    hooks = CasebankHooks(banked.memory, AGENT, judge=lambda _: "partial")
    async with ClaudeSDKClient(ClaudeAgentOptions(hooks=hooks.hooks, cli_path=claude)) as client:
        await client.query("rename a column")
        assert [type(message) async for message in hooks.watch(client.receive_response())] == [ResultMessage]
    assert [case["outcome"] for case in banked.cases()] == ["partial"]


async def test_an_agent_runs_without_casebank(nobody: Casebank, claude: str):
    assert (await run(nobody, claude, "rename a column by select")).subtype == "success"


@pytest.mark.parametrize("call", ["old", "told"])
async def test_advice_is_added_to_a_failed_call(banked: Banked, claude: str, call: str):
    """The call is reported as failed, or says so in what it returns."""
    banked.learn()
    for advice_s in (60, 0):
        added = (await run(banked.memory, claude, f"{TASK} {call}", advice_s)).result or ""
        assert (MARK in added, "dialect" in added.partition(MARK)[2]) == (advice_s > 0, advice_s > 0)


async def test_a_hundred_failed_calls_cost_nothing_where_memory_is_of_no_use(
    no_use: Casebank, claude: str, caplog: pytest.LogCaptureFixture
):
    result = await run(no_use, claude, TASK + " old told" * 50, advice_s=0.02)
    assert (result.subtype, caplog.text.count(OF_NO_USE)) == ("success", 100)
