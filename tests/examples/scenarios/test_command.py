"""Each scenario tells its story against a running service, and exits with 1 where a promise is broken."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from app.processes.own_service import free_port
from examples.scenarios.command import SKIPPED, STORIES, scenario
from tests.paths import ROOT
from tests.processes import Service, migrated_home, surroundings

command = typer.Typer()
command.command()(scenario)


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with migrated_home() as home, Service(home) as running:
        yield running


def run(service: Service, name: str, *users: str) -> Result:
    tokens = [service.bearer(user)["Authorization"].removeprefix("Bearer ") for user in users]
    options = [word for token in tokens for word in ("--token", token)]
    return CliRunner().invoke(command, [name, "--url", service.url, *options])


@pytest.mark.parametrize("name", STORIES)
def test_a_scenario_keeps_its_promises(service: Service, name: str):
    done = run(service, name, "ann", "ben")
    if done.exit_code == SKIPPED:
        pytest.skip(done.stderr)
    assert done.exit_code == 0, done.output


def test_scenarios_can_be_told_again_in_the_same_bank(service: Service):
    assert [run(service, "n8n", "cleo").exit_code for _ in range(2)] == [0, 0]


def test_a_scenario_that_cannot_keep_a_promise_exits_with_1(service: Service):
    done = run(service, "chat-backend", "ann")
    assert (done.exit_code, "two users" in done.stderr) == (1, True)


def test_an_address_without_casebank_is_one_line_and_exit_status_1():
    done = CliRunner().invoke(command, ["n8n", "--url", f"http://127.0.0.1:{free_port()}", "--token", "x"])
    assert (done.exit_code, len(done.stderr.splitlines())) == (1, 1)


def test_without_an_address_a_scenario_starts_a_service_of_its_own():
    command = (sys.executable, "-m", "examples.scenarios", "n8n")
    with migrated_home() as home:
        around = surroundings(home)
        done = subprocess.run(command, cwd=ROOT, env=around, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stderr
