"""`casebank console` prints a link that opens the console of a running service."""

from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from app.cli import cli
from app.processes.own_service import free_port
from tests.app.console.conftest import HERE, stranger
from tests.app.console.pages import Page, send
from tests.service import Service, User


@pytest.fixture
def here(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASEBANK_HOME", str(tmp_path))
    monkeypatch.setenv("DATABASE_URL", str(service.settings.database_url))
    monkeypatch.setenv("CASEBANK_MASTER_KEY", service.settings.master_key_bytes.hex())


async def follow(service: Service, *words: str, given: str = "") -> httpx.AsyncClient:
    """Somebody who opened the link that the command printed."""
    printed = CliRunner().invoke(cli, ("console", "--no-open", *words), input=given)
    assert printed.exit_code == 0, printed.output
    http = await stranger(service)
    page = await http.get(printed.stdout.strip().removeprefix(HERE))
    assert (await send(http, Page(page.text).form("/console/link"))).status_code == 303
    return http


async def test_the_link_signs_in_whom_it_names(service: Service, alice: User, here: None):
    for words, given in (((alice.name,), ""), (("-",), f"{alice.name}\n")):
        http = await follow(service, "--user", *words, given=given)
        assert alice.name in (await http.get("/console/user")).text
        assert (await http.get("/console/installation")).status_code == 404


async def test_the_operators_link_shows_the_installation(service: Service, here: None):
    http = await follow(service, "--operator")
    assert (await http.get("/console/installation")).status_code == 200


def test_a_link_is_of_somebody(service: Service, here: None):
    assert CliRunner().invoke(cli, ("console", "--no-open")).exit_code == 2


@pytest.mark.parametrize("address", ["nonsense", "http://", "ftp://a", "http://a:b", ""])
def test_an_address_that_is_none_gets_no_link(address: str, service: Service, here: None):
    done = CliRunner().invoke(cli, ("console", "--no-open", "--operator", "--at", address))
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--at" in done.stderr


def test_a_link_to_where_nothing_answers_says_so(service: Service, here: None):
    at = f"http://127.0.0.1:{free_port()}"
    printed = CliRunner().invoke(cli, ("console", "--no-open", "--operator", "--at", at))
    assert printed.stdout.startswith(f"{at}/console/link?")
    assert f"nothing answers at {at}" in printed.stderr
