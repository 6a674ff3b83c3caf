"""What docs/mcp.md says to put into a program's configuration does what it says there."""

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

import httpx
import httpx2
import pytest

from tests.pages import blocks, shell
from tests.paths import ROOT
from tests.processes import CASEBANK_FORK, Service, migrated_home, surroundings

mcp = pytest.importorskip("mcp", reason="the extra mcp is not installed")

PAGE = (ROOT / "docs" / "mcp.md").read_text()
LOCAL = "http://127.0.0.1:8700"


def configured() -> list[dict[str, Any]]:
    """Every server of the configurations on the page."""
    blocks = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
    return [block.get("servers", block.get("mcpServers"))["memory"] for block in blocks]


def claude_code() -> list[list[str]]:
    return [shlex.split(line) for line in PAGE.splitlines() if line.startswith("claude mcp add")]


def words_of_stdio() -> list[list[str]]:
    """What the page says to start: the command lines of a program's configuration and of Claude Code."""
    by_file = [[each["command"], *each["args"]] for each in configured() if "command" in each]
    return by_file + [words[words.index("--") + 1 :] for words in claude_code() if "--" in words]


def addresses() -> list[str]:
    by_file = [each["url"] for each in configured() if "url" in each]
    return by_file + [word for words in claude_code() for word in words if word.startswith("http:")]


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with migrated_home() as home, Service(home) as service:
        yield service


def test_there_is_something_to_try():
    assert (len(words_of_stdio()), len(addresses())) == (2, 3)
    assert all("Authorization" in each["headers"] for each in configured() if "url" in each)


@pytest.mark.parametrize("words", words_of_stdio(), ids=" ".join)
async def test_a_command_of_the_page_starts_a_server_of_five_tools(words: list[str], service: Service):
    assert words[0] == "casebank"
    # beside a service of the same home, which is no harm
    started = mcp.StdioServerParameters(
        command=CASEBANK_FORK, args=words[1:], env=surroundings(service.home), cwd=str(ROOT)
    )
    async with mcp.Client(started) as client:
        assert len((await client.list_tools()).tools) == 5


@pytest.mark.parametrize("address", addresses())
async def test_an_address_of_the_page_answers_who_has_a_token(address: str, service: Service):
    assert address.startswith(LOCAL)
    url = address.replace(LOCAL, service.url)
    async with httpx2.AsyncClient(headers=service.bearer("alice"), timeout=60) as http:
        transport = mcp.client.streamable_http.streamable_http_client(url, http_client=http)
        async with mcp.Client(transport) as client:
            assert len((await client.list_tools()).tools) == 5
            answer = await client.call_tool("remember", {"kind": "goal", "text": "read more"})
            assert not answer.is_error
    agent = address.rpartition("agent=")[2]
    with service.client("alice") as api:
        assert agent in {profile["agent"] for profile in api.get("/v1/profiles").json()["profiles"]}


def test_the_commands_of_the_page_do_what_it_says(service: Service):
    _, commands, _ = blocks("mcp.md", "sh")
    stdio, serve, token = commands.splitlines()
    assert shell(service.home, stdio) == ""  # there is nothing on its standard input but the end of it
    assert serve.startswith("casebank serve ")  # which is what is started here, on another port
    shown = {"Authorization": f"Bearer {shell(service.home, token).strip()}"}
    assert httpx.get(f"{service.url}/v1/profiles", headers=shown, timeout=60).status_code == 200
