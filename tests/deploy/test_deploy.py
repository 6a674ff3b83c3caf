"""The Containerfile, the compose file and the systemd units: each command of theirs runs where casebank is installed.

No container is built here. What the files say is run in a plain environment, with their own folders put elsewhere.
"""

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from app.postgres import EmbeddedPostgres, program
from app.processes.own_service import free_port
from tests.conftest import new_database
from tests.deploy.conftest import CONTAINERFILE, OFFLINE, instructions, run
from tests.paths import ROOT
from tests.processes import CASEBANK_FORK, new_home, until

pytestmark = pytest.mark.timeout(600)
DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
OURS = {name: service for name, service in COMPOSE["services"].items() if name != "postgres"}
UNITS = sorted((DEPLOY / "systemd").iterdir())
ANALYZE = shutil.which("systemd-analyze")
PROGRAMS = Path(CASEBANK_FORK).parent
"""Folder of the program; that a wheel's does as much is the matter of `test_wheel.py`."""
SECRET = {"POSTGRES_PASSWORD": "p" * 32, "CASEBANK_MASTER_KEY": "a" * 64, "CASEBANK_JWT_SECRET": "j" * 64}


def environment(service: dict[str, Any], url: str, home: Path) -> dict[str, str]:
    """What the compose file gives a container of that service, but for where the database is."""
    given = {
        name: re.sub(r"\$\{(\w+):(?:\?[^}]*|-(\w+))\}", lambda m: m[2] or SECRET[m[1]], value)
        for name, value in service["environment"].items()
    }
    bare = {name: value for name, value in os.environ.items() if not name.startswith("CASEBANK_")}
    return bare | given | {"DATABASE_URL": url, "CASEBANK_HOME": str(home)}


@contextmanager
def started(command: list[str], given: dict[str, str], home: Path) -> Iterator[subprocess.Popen[bytes]]:
    home.mkdir(exist_ok=True)
    with (home / "log").open("ab") as log:
        given = {name: value for name, value in given.items() if name != "PYTHONPATH"}
        process = subprocess.Popen(command, env=given, cwd=home, stdout=log, stderr=log)
    try:
        yield process
        assert process.poll() is None, (home / "log").read_text()
    finally:
        process.terminate()
        process.wait(timeout=60)


@pytest.fixture
async def url(postgres: EmbeddedPostgres) -> str:
    return await new_database(postgres)


def test_the_image_is_built_by_commands_that_run(wheel: Path, tmp_path: Path):
    build, *others = instructions("RUN")  # the first has built the wheel
    assert build.startswith("pip wheel ")
    (tmp_path / "wheels").mkdir()
    for file in (wheel, ROOT / "constraints.txt"):
        shutil.copy(file, tmp_path / "wheels")
    # pip as the image has it; what is installed goes beside, for the environment here is not the image's
    pip = f"{sys.executable} -m pip"
    for line in others:
        placed = line.replace("/wheels", str(tmp_path / "wheels")).replace("/var/lib/casebank", str(tmp_path / "home"))
        placed = re.sub(r"^pip install", f"{pip} install --target {tmp_path / 'site'}", placed)
        run("/bin/sh", "-euc", placed, cwd=tmp_path, EXTRAS="", **OFFLINE)
    assert (tmp_path / "site" / "app" / "migrations" / "env.py").exists()
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700


def test_the_compose_file_runs_two_replicas_a_worker_and_the_nightly_training(url: str):
    casebank = CASEBANK_FORK
    with new_home() as home:
        home.mkdir()
        given = {name: environment(service, url, home / name) for name, service in OURS.items()}
        run(casebank, *OURS["migrate"]["command"], cwd=home, **given["migrate"])
        ports = [free_port() for _ in range(OURS["service"]["deploy"]["replicas"])]
        serve = [casebank, *OURS["service"]["command"]]
        one, two = [[*serve, "--host", "127.0.0.1", "--port", str(port)] for port in ports]
        with (
            started(one, given["service"], home / "one"),
            started(two, given["service"], home / "two"),
            started([casebank, *OURS["worker"]["command"]], given["worker"], home / "worker"),
        ):
            for port in ports:
                until(lambda port=port: healthy(port))
            token = run(casebank, "token", "--user", "alice", cwd=home, **given["service"]).strip()
            bearer = {"Authorization": f"Bearer {token}"}
            here, there = [
                httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=bearer, timeout=60) for port in ports
            ]
            body = {"agent": "a", "task": "water the garden", "outcome": "success"}
            case_id = here.post("/v1/retain", json=body).json()["case_id"]
            until(lambda: there.get(f"/v1/cases/{case_id}").json()["status"] == "ready")
            (nightly,) = OURS["nightly"]["command"]
            (command,) = re.findall(r"do (.*); done", nightly)
            path = f"{PROGRAMS}:{os.environ['PATH']}"
            run(*OURS["nightly"]["entrypoint"], command, cwd=home, **{**given["nightly"], "PATH": path})


def healthy(port: int) -> bool:
    """What the health check of the image says of a service that takes connections."""
    with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
        return _passes_the_health_check(port)
    return False


def _passes_the_health_check(port: int) -> bool:
    (words,) = re.findall(r"^HEALTHCHECK .*CMD (\[.*\])$", CONTAINERFILE, re.MULTILINE)
    python, *rest = yaml.safe_load(words.replace("8700", str(port)))
    done = subprocess.run([str(Path(sys.executable).with_name(python)), *rest], capture_output=True, check=False)
    return done.returncode == 0


def test_the_databases_health_check_runs(postgres: EmbeddedPostgres):
    _, name, *words = COMPOSE["services"]["postgres"]["healthcheck"]["test"]
    where = {"PGHOST": str(postgres.socket_dir), "PGPORT": str(postgres.port)}
    run(program(name), *words, cwd=ROOT, **where)


def test_every_service_waits_for_the_migration_and_has_the_same_keys():
    for name, service in OURS.items():
        wanted = {"postgres"} if name == "migrate" else {"migrate"}
        assert set(service["depends_on"]) == wanted
        assert service["environment"] == OURS["service"]["environment"]


@pytest.mark.skipif(ANALYZE is None, reason="there is no systemd here")
def test_systemd_finds_nothing_wrong_with_the_units(tmp_path: Path):
    for unit in UNITS:
        placed = unit.read_text().replace("/opt/casebank/bin", str(PROGRAMS))
        (tmp_path / unit.name).write_text(placed)
    for unit in UNITS:
        done = subprocess.run(
            (str(ANALYZE), "verify", "--man=no", str(tmp_path / unit.name)),
            capture_output=True,
            text=True,
            check=False,
        )
        mine = [line for line in done.stderr.splitlines() if "casebank" in line and "postgresql" not in line]
        assert mine == []


@pytest.mark.skipif(ANALYZE is None, reason="there is no systemd here")
@pytest.mark.parametrize("unit", [unit for unit in UNITS if unit.suffix == ".service"], ids=lambda unit: unit.name)
def test_a_unit_is_exposed_by_3_of_10_at_most(unit: Path, tmp_path: Path):
    placed = tmp_path / unit.name.replace("@", "@8700")
    placed.write_text(unit.read_text())
    run(str(ANALYZE), "security", "--offline=yes", "--threshold=30", "--no-pager", str(placed), cwd=tmp_path)


def test_every_command_of_the_units_runs():
    with new_home() as home:
        settings: dict[str, str] = {}
        commands: list[list[str]] = []
        for unit in (DEPLOY / "systemd" / "casebank.service", DEPLOY / "systemd" / "casebank-train.service"):
            text = unit.read_text().replace("/opt/casebank/bin", str(PROGRAMS))
            text = text.replace("/var/lib/casebank", str(home))
            for line in re.findall(r"^Environment=(.*)$", text, re.MULTILINE):
                settings |= dict(word.split("=", 1) for word in shlex.split(line))
            commands += [shlex.split(line) for line in re.findall(r"^ExecStart(?:Pre)?=(.*)$", text, re.MULTILINE)]
        serve, train = commands  # and no migration: the service's login has no right to it
        bare = {name: value for name, value in os.environ.items() if not name.startswith("CASEBANK_")}
        port = free_port()
        with started([*serve, "--port", str(port)], bare | settings, home):
            until(lambda: healthy(port))
            run(*train, cwd=home, **bare | settings)
