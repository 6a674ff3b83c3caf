"""`casebank mcp` as a program starts it that speaks the protocol: the official client drives the loop."""

import asyncio
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli import cli
from tests.paths import ROOT
from tests.processes import ANSWER_S, CASEBANK_FORK, casebank, migrated_home, surroundings

mcp = pytest.importorskip("mcp", reason="the extra mcp is not installed")


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with migrated_home() as home:
        yield home


async def said(client: "mcp.Client", tool: str, **given: object) -> str:
    result = await client.call_tool(tool, given)
    assert not result.is_error, result
    return result.content[0].text


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_what_one_user_remembers_is_recalled_and_is_in_their_export(mode: str, home: Path):
    user = f"ann {mode}"
    words = ["mcp", "--user", user, "--agent", "coach"]
    server = mcp.StdioServerParameters(command=CASEBANK_FORK, args=words, env=surroundings(home), cwd=str(ROOT))
    async with mcp.Client(server, mode=mode) as client:
        tools = (await client.list_tools()).tools
        assert len(tools) == 5
        await said(client, "remember", kind="goal", text="run a marathon")
        assert "run a marathon" in await said(client, "get_my_goals")
        retrieval_id = (
            (await said(client, "recall", query="plan the training")).rpartition("retrieval_id: ")[2].split()[0]
        )
        run = {"text": "plan the training", "outcome": "success", "retrieval_id": retrieval_id, "steps": '["run"]'}
        kept = await said(client, "remember", kind="run", **run)
        assert "joined to its recall" in kept
        assert (await client.call_tool("forget", {"id": "x"})).is_error
    exported = casebank(home, "export", "--user", user).stdout
    assert "plan the training" in exported
    assert "casebank mcp" in exported  # the actor in the audit


async def begun(home: Path, user: str, *messages: dict[str, object]) -> asyncio.subprocess.Process:
    """Starts the server for this user, and sends it the first message of the protocol and then these."""
    pipe = asyncio.subprocess.PIPE
    words = ("mcp", "--user", user, "--agent", "coach")
    process = await asyncio.create_subprocess_exec(
        CASEBANK_FORK, *words, env=surroundings(home), stdin=pipe, stdout=pipe
    )
    assert process.stdin is not None
    who = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    for message in ({"id": 1, "method": "initialize", "params": who}, *messages):
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    return process


async def test_a_call_with_half_a_character_is_answered_as_any_other(home: Path):
    given = {"kind": "goal", "text": "run a marathon \ud83c"}
    call = {"id": 2, "method": "tools/call", "params": {"name": "remember", "arguments": given}}
    process = await begun(home, "ann half", {"method": "notifications/initialized"}, call)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        answers = [json.loads(await asyncio.wait_for(process.stdout.readline(), ANSWER_S)) for _ in range(2)]
    finally:
        process.stdin.close()
        await process.wait()
    assert answers[1]["id"] == 2
    assert "Stored as " in answers[1]["result"]["content"][0]["text"]


async def test_a_line_that_is_no_message_is_answered_with_an_error_and_the_next_as_ever(home: Path):
    process = await begun(home, "ann odd")
    assert process.stdin is not None
    ping = {"jsonrpc": "2.0", "id": 7, "method": "ping"}
    for line in ("hello", "", json.dumps([ping, ping]), json.dumps(ping)):
        process.stdin.write(line.encode() + b"\n")
    out, _ = await asyncio.wait_for(process.communicate(b""), ANSWER_S)
    answers = [json.loads(line) for line in out.splitlines()]
    refused = [answer["error"]["code"] for answer in answers if answer["id"] is None]
    assert refused == [-32700, -32600]
    assert [answer["id"] for answer in answers if "result" in answer] == [1, 7]


async def test_what_was_asked_before_the_input_ended_is_answered(home: Path):
    call = {"method": "tools/call", "params": {"name": "remember", "arguments": {"kind": "goal", "text": "run far"}}}
    left = {"id": 9, **call}, {"method": "notifications/cancelled", "params": {"requestId": 9}}
    process = await begun(home, "ann brief", {"method": "notifications/initialized"}, *left, {"id": 0, **call})
    out, _ = await asyncio.wait_for(process.communicate(b""), ANSWER_S)
    answer = next(each for each in map(json.loads, out.splitlines()) if each["id"] == 0)
    assert "Stored as " in answer["result"]["content"][0]["text"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_ends_when_it_is_told_to_while_its_input_is_open(number: signal.Signals, home: Path):
    process = await begun(home, "ann stop")
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        await asyncio.wait_for(process.stdout.readline(), ANSWER_S)
        process.send_signal(number)
        assert await asyncio.wait_for(process.wait(), ANSWER_S) == 0
    finally:
        process.stdin.close()
        await process.wait()


async def test_it_ends_if_its_input_cannot_be_read(home: Path, tmp_path: Path):
    words = ("mcp", "--user", "ann blind", "--agent", "coach")
    with (tmp_path / "written only").open("wb") as stdin:
        process = await asyncio.create_subprocess_exec(CASEBANK_FORK, *words, env=surroundings(home), stdin=stdin)
    try:
        await asyncio.wait_for(process.wait(), ANSWER_S)
    except TimeoutError:
        process.kill()
        raise


def test_a_name_that_no_user_has_is_refused():
    refused = CliRunner().invoke(cli, ["mcp", "--user", "", "--agent", "coach"])
    assert refused.exit_code == 2
