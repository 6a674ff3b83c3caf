"""The machine: what no database is asked for."""

import resource
import stat
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from app.doctor import examine, machine
from app.settings import Settings
from tests.app.doctor.conftest import look, settings


async def test_secrets_that_others_can_read_are_found(url: str, tmp_path: Path):
    made = settings(url, tmp_path)
    assert made.home_secrets
    path = tmp_path / "secrets.json"
    assert (await look(url, tmp_path))["secrets"].ok
    path.chmod(stat.S_IRUSR | stat.S_IROTH)
    assert (await look(url, tmp_path))["secrets"].ok is False


def test_the_space_of_a_home_that_is_not_there_yet_is_that_of_the_folder_above(tmp_path: Path):
    assert str(tmp_path) in machine.disk(Settings(home=tmp_path / "later" / "home")).detail


async def test_a_secret_that_is_too_short_is_found(url: str, tmp_path: Path):
    (tmp_path / "secrets.json").write_text('{"jwt_secret": "hunter2"}')
    found = await examine(Settings(home=tmp_path, database_url=url))
    assert found["tokens"].ok is False
    assert found["secrets"].ok is False
    assert "too short" in found["secrets"].detail


async def test_published_keys_that_nobody_can_reach_are_found(url: str, tmp_path: Path):
    finding = (await look(url, tmp_path, jwks_url="http://127.0.0.1:1/keys"))["tokens"]
    assert finding.ok is False
    assert "Connection" in finding.detail


def test_more_connections_than_files_may_be_open_are_found(tmp_path: Path):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert machine.open_files(Settings(home=tmp_path)).ok is (hard >= 1_256)
    assert machine.open_files(Settings(home=tmp_path, connections={"total": hard})).ok is False


ED25519 = '{"kty": "OKP", "crv": "Ed25519", "kid": "a", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}'
"""A published key that no token of casebank may be signed with."""


@pytest.mark.parametrize(
    "answer",
    [
        *("[]", "{}", "<html>", '{"keys": 5}', '{"keys": "abc"}', '{"keys": []}', '{"keys": [{"kty": "RSA"}]}', "\xff"),
        f'{{"keys": [{ED25519}]}}',
    ],
)
async def test_an_answer_without_a_key_to_check_tokens_with_is_found(tmp_path: Path, answer: str):
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer.encode("latin-1"))

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        found = machine.tokens(Settings(home=tmp_path, jwks_url=f"http://127.0.0.1:{server.server_port}/keys"))
        server.shutdown()
    assert found.ok is False


async def test_a_broken_file_of_secrets_is_a_finding_and_the_rest_of_the_report_comes_all_the_same(
    url: str, tmp_path: Path
):
    (tmp_path / "secrets.json").write_text("{")
    (tmp_path / "secrets.json").chmod(stat.S_IRUSR)
    found = await examine(Settings(home=tmp_path, database_url=url))
    assert found["tokens"].ok is False
    assert found["secrets"].ok is False
    assert found["keys"].ok is not True
    assert found["postgres"].ok
