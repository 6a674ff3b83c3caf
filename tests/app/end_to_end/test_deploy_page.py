"""docs/deploy.md: its commands, and what its units start, make one service of two replicas and a worker."""

import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import Popen, run
from typing import Any

import httpx
import pytest
import yaml

from app import postgres
from app.postgres.pools import dsn
from app.processes.own_service import free_port
from app.settings import Settings
from tests.app.auth.test_tokens_published_keys import Issuer, issuer, rsa  # noqa: F401 - a fixture
from tests.app.tokens import bearer
from tests.pages import blocks, shell
from tests.paths import ROOT
from tests.processes import CASEBANK_FORK, CERTIFICATES, get, new_home, surroundings, until, worked

pytestmark = pytest.mark.timeout(600)
PAGE = (ROOT / "docs" / "deploy.md").read_text()
DEPLOY = ROOT / "deploy"
ISSUER = "https://login.example.org/"
ROLES, SCHEMA, SETTINGS, UNITS, WELL, COMPOSE = blocks("deploy.md", "sh")
CRON = PAGE.partition("\n30 3 * * *  root  ")[2].partition("\n")[0]


def started(unit: str, folder: Path) -> tuple[list[str], dict[str, str]]:
    """Returns the command that the unit of that name in the folder runs, and the settings that it gives."""
    name, _, instance = unit.partition("@")
    text = (folder / (f"{name}@.service" if instance else f"{name}.service")).read_text()
    text = text.replace("%i", instance).replace("/opt/casebank/bin/casebank", CASEBANK_FORK)
    assert "EnvironmentFile=/etc/casebank/environment\n" in text
    (command,) = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
    (given,) = re.findall(r"^Environment=(.*)$", text, re.MULTILINE)
    return shlex.split(command), dict(word.split("=", 1) for word in shlex.split(given))


@contextmanager
def running(command: list[str], around: dict[str, str], log: Path) -> Iterator[None]:
    with log.open("ab") as out:
        process = Popen(command, env=around, cwd=ROOT, stdout=out, stderr=out)
    try:
        yield
        assert process.poll() is None, log.read_text()
    finally:
        process.terminate()
        process.wait(timeout=60)


def test_two_replicas_and_a_worker_are_one_service(issuer: Issuer, tmp_path: Path):  # noqa: F811 - it is the fixture
    ports = {name: str(free_port()) for name in ("8700", "8701", "8710")}
    etc = tmp_path / "etc"

    def here(text: str) -> str:
        """The page's words with the test's ports, folders and issuer in the place of the page's."""
        text = re.sub(r"\b(8700|8701|8710)\b", lambda found: ports[found[1]], text)
        text = text.replace(f"{ISSUER}.well-known/jwks.json", issuer.url)
        return text.replace("/etc/", f"{etc}/")

    with new_home() as home, postgres.running(home) as server, ExitStack() as processes:
        logins = {
            f"{login}_URL": dsn(server.url(database, role))
            for login, database, role in (
                ("ADMIN", "postgres", "postgres"),
                ("OWNER", "memory", "memory_owner"),
                ("SERVICE", "memory", "memory_service"),
            )
        }
        given = {**logins, "OWNER_PASSWORD": "o" * 32, "SERVICE_PASSWORD": "s" * 32}
        for commands in (ROLES, SCHEMA, SETTINGS):
            shell(home, here(commands), **given)
        copy, enable = UNITS.splitlines()
        folder = etc / "systemd" / "system"
        folder.mkdir(parents=True)
        shell(home, here(copy))
        environment = etc / "casebank" / "environment"
        assert environment.stat().st_mode & 0o077 == 0
        settings = dict(word.split("=", 1) for word in shlex.split(environment.read_text()))
        units = shlex.split(here(enable).removeprefix("systemctl enable --now "))
        *services, timer = units
        assert len(services) == 3
        assert (folder / timer).exists()
        for unit in services:
            command, more = started(unit, folder)
            command = [here(word) for word in command]
            around = surroundings(home, **more | settings | {"CASEBANK_HOME": str(tmp_path)})
            processes.enter_context(running(command, around, tmp_path / f"{unit}.log"))
        urls = [f"http://127.0.0.1:{ports[name]}" for name in ("8700", "8701")]
        for url in urls:
            until(lambda url=url: answers(f"{url}/readyz"))
        until(lambda: answers(f"http://127.0.0.1:{ports['8710']}/metrics"))
        assert [unit for unit in services if "memory at " not in (tmp_path / f"{unit}.log").read_text()] == []
        shell(home, here(WELL), **given)
        night = here(CRON).replace("/opt/casebank/bin/casebank", CASEBANK_FORK)  # cron has no variables of the service
        bare = surroundings(tmp_path / "root")
        trained = run(shlex.split(night), check=True, env=bare, cwd=ROOT, capture_output=True, text=True)
        assert trained.stderr.startswith("casebank: database: memory at ")
        one, other = (processes.enter_context(client(url)) for url in urls)
        body = {"agent": "a", "task": "water the garden", "outcome": "success"}
        case_id = one.post("/v1/retain", json=body).json()["case_id"]
        worked(other, case_id)
        found = other.post("/v1/retrieve", json={"agent": "a", "query": "water the garden"}).json()
        assert [each["case_id"] for each in found["cases"]] == [case_id]
        # Prometheus on another machine, with a token of the scopes and audience for which docs/watch.md has it ask
        (scrape,) = yaml.safe_load(blocks("watch.md", "yaml")[0])["scrape_configs"]
        asks = scrape["oauth2"]
        scopes, audience = " ".join(asks["scopes"]), asks["endpoint_params"]["audience"]
        for scope, status in ((scopes, 200), (None, 403)):
            token = bearer(
                key=rsa("one"), alg="RS256", kid="one", iss=ISSUER, sub="prometheus", aud=audience, scope=scope
            )
            away = {"Authorization": token, "X-Forwarded-For": "192.0.2.1"}
            assert get(f"{urls[0]}/metrics", headers=away).status_code == status
        strange = {"Authorization": bearer(key=rsa("stranger"), alg="RS256", kid="one", iss=ISSUER)}
        assert get(f"{urls[0]}/v1/cases", headers=strange).status_code == 401


def answers(url: str) -> bool:
    try:
        return get(url).status_code == 200
    except httpx.TransportError:
        return False


def client(url: str) -> httpx.Client:
    """A user whose token a published key signed."""
    headers = {"Authorization": bearer(key=rsa("one"), alg="RS256", kid="one", iss=ISSUER)}
    return httpx.Client(base_url=url, headers=headers, timeout=60, verify=CERTIFICATES)


def test_the_commands_of_the_containers_are_those_of_the_compose_file():
    text = (DEPLOY / "compose.yaml").read_text()
    said = "".join(f"{line.removeprefix('#').strip()}\n" for line in text.splitlines() if line.startswith("#   "))
    assert said == COMPOSE
    wanted = set(re.findall(r"\$\{(\w+):\?", text))
    assert wanted == set(re.findall(r"^export (\w+)=", COMPOSE, re.MULTILINE))
    services: dict[str, Any] = yaml.safe_load(text)["services"]
    assert services["service"]["deploy"]["replicas"] == 2


def test_each_setting_that_is_named_there_is_one():
    known = {f"CASEBANK_{name.upper()}" for name in Settings.model_fields}
    files = [PAGE, *(path.read_text() for path in DEPLOY.rglob("*") if path.is_file())]
    named = {name for text in files for name in re.findall(r"\bCASEBANK_[A-Z_]+\b", text)}
    assert len(named) > 5
    assert named <= known
