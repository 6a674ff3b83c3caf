"""The page about execution memory: its commands, run as a reader would, answer what it says."""

import json
import re
import subprocess
from collections.abc import Iterator

import httpx
import pytest

from tests.paths import ROOT
from tests.processes import Service, migrated_home

PAGE = (ROOT / "docs" / "execution-memory.md").read_text()
COMMANDS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
BLOCK = re.search(r"^```\n(# Execution Memory.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with migrated_home() as home, Service(home) as running:
        yield running


def run(service: Service, script: str) -> list[str]:
    """What each command answers, apart by an empty line."""
    there = script.replace("localhost:8700", service.url.removeprefix("http://"))
    token = service.bearer("alice")["Authorization"].removeprefix("Bearer ")
    commands = f"TOKEN={token}\n{there}".replace("\n\ncurl", "\necho; curl")
    done = subprocess.run(("/bin/bash", "-ec", commands), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if line]


def test_the_commands_of_the_page_do_what_it_says(service: Service):
    steps, known, told = map(json.loads, run(service, COMMANDS[0]))
    assert steps["step_count"] == 2
    assert (known["known"], known["age_steps"], known["finding"]["path"]) == (True, 1, "bank/queue.py")
    assert known["content"].startswith("RETRIES = 3")
    assert BLOCK is not None
    assert told["text"] == BLOCK[1]
    written = json.loads(run(service, f"RUN={told['run_id']}\n{COMMANDS[1]}")[0])
    assert written["findings"] == 1
    (profile,) = map(json.loads, run(service, COMMANDS[2]))
    assert profile["tool_kinds"]["peek"] == "read"
    assert len(COMMANDS) == 3


def test_the_page_explains_every_reason(service: Service):
    with httpx.Client(base_url=service.url, timeout=60) as client:
        schema = client.get("/openapi.json").json()["components"]["schemas"]["KnownOut"]["properties"]["why"]
    assert set(schema["enum"]) == set(re.findall(r"^\| `(\w+)` \| ", PAGE, re.MULTILINE)) - {"why"}
