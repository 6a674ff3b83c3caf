"""What the service is as a process: how it is started and stopped, what it loads, weighs, logs and counts.

`Service`, `new_home` and what stands beside them serve the other tests of real processes, too.
"""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from app import embedded
from app.auth import issue_token
from app.settings import Settings

ROOT = Path(__file__).parents[2]
CASEBANK = str(Path(sys.executable).parent / "casebank")
PATIENCE = 1200
"""How often `until` looks, twenty times a second, before it gives up."""

T = TypeVar("T")


def until(found: Callable[[], T]) -> T:
    """Returns the first result that counts as true."""
    for _ in range(PATIENCE):
        if result := found():
            return result
        time.sleep(0.05)
    raise AssertionError("it never came")


def surroundings(home: Path, **settings: str) -> dict[str, str]:
    """Returns the environment of a command with these settings and no others."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("CASEBANK_") and k != "DATABASE_URL"}
    return inherited | {"CASEBANK_HOME": str(home), "COLUMNS": "500"} | settings


def casebank(home: Path, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end."""
    command = (CASEBANK, *words)
    return subprocess.run(
        command, env=surroundings(home, **settings), cwd=ROOT, capture_output=True, text=True, check=True
    )


def alive(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def postmaster_pid(home: Path) -> int | None:
    """Returns the pid of the home's Postgres, or None where none is up."""
    with suppress(FileNotFoundError):
        return int((home / "postgres" / "postmaster.pid").read_text().split()[0])
    return None


def postgres_processes(home: Path) -> list[psutil.Process]:
    """Returns every living process of the home's Postgres: they all work in its data folder."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.name() == "postgres" and process.cwd() == str(home / "postgres"):
                found.append(process)
    return found


@contextmanager
def new_home() -> Iterator[Path]:
    """Yields a place for the state of services, and leaves neither it nor a Postgres behind.

    Not below pytest's own folder: another pytest that starts meanwhile closes that one to Postgres's OS user.
    """
    with tempfile.TemporaryDirectory(prefix="casebank-tests-", ignore_cleanup_errors=True) as folder:
        home = Path(folder).resolve() / "home"
        try:
            yield home
        finally:
            if (home / "postgres").exists():
                with embedded.running(home):
                    pass


class Service:
    """`casebank serve` as a process of its own; a `with` starts it and stops it."""

    program: tuple[str, ...] = (CASEBANK, "serve", "--port")

    def __init__(self, home: Path, **settings: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.home = home
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = home.parent / f"service-{self.port}.log"
        self.process: subprocess.Popen[bytes] | None = None
        self._environment = surroundings(home, **settings)

    def __enter__(self) -> Self:
        self.start()
        self.ready()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None:
            self.stop()

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                (*self.program, str(self.port)), env=self._environment, cwd=ROOT, stdout=log, stderr=log
            )

    def ready(self) -> None:
        until(self._is_ready)

    def _is_ready(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        with suppress(httpx.TransportError):
            return httpx.get(f"{self.url}/readyz").status_code == 200
        return False

    def end(self, number: signal.Signals) -> int:
        """Sends the signal that is to end the process, and returns what it ended with."""
        process, self.process = self.process, None
        process.send_signal(number)
        return process.wait(timeout=60)

    def stop(self) -> int:
        return self.end(signal.SIGTERM)

    def kill(self) -> None:
        self.end(signal.SIGKILL)

    def bearer(self, user: str) -> dict[str, str]:
        settings = Settings(home=self.home)
        token = issue_token(
            settings.signing_secret,
            user=user,
            issuer=settings.jwt_issuer,
            audience=settings.jwt_audience,
            ttl=timedelta(hours=1),
            now=datetime.now(UTC),
        )
        return {"Authorization": f"Bearer {token}"}

    def client(self, user: str) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers=self.bearer(user), timeout=60)


def retain(client: httpx.Client, task: str, **more: Any) -> str:
    """Retains a run and returns the case's id."""
    answer = client.post("/v1/retain", json={"agent": "a", "task": task, "outcome": "success", **more})
    assert answer.status_code == 202, answer.text
    return answer.json()["case_id"]


def retrieve(client: httpx.Client, query: str) -> dict[str, Any]:
    answer = client.post("/v1/retrieve", json={"agent": "a", "query": query})
    assert answer.status_code == 200, answer.text
    return answer.json()


def worked(client: httpx.Client, case_id: str) -> None:
    """Waits for the case to be ready."""
    until(lambda: client.get(f"/v1/cases/{case_id}").json()["status"] == "ready")


def pages(client: httpx.Client, path: str, name: str, **filters: str) -> list[dict[str, Any]]:
    """Returns every entry of a listing, page by page."""
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        page = client.get(path, params={"limit": "37", **filters, **cursor}).json()
        found += page[name]
        if page["next_cursor"] is None:
            return found
        cursor = {"cursor": page["next_cursor"]}


def bank(client: httpx.Client, status: str = "any") -> list[dict[str, Any]]:
    """Returns every case of that status."""
    return pages(client, "/v1/cases", "cases", status=status)


LOOP = """
import asyncio, json, sys
import httpx
from app.auth import issue_token
from app.main import create_app
from app.settings import Settings
from datetime import UTC, datetime, timedelta

async def main():
    settings = Settings()
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        token = issue_token(settings.signing_secret, user="alice", issuer="casebank", audience="casebank",
                            ttl=timedelta(hours=1), now=datetime.now(UTC))
        headers = {"Authorization": f"Bearer {token}"}
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client:
            run = {"agent": "a", "task": "water the plants", "outcome": "success"}
            case = (await client.post("/v1/retain", json=run)).json()["case_id"]
            for _ in range(600):
                if (await client.get(f"/v1/cases/{case}")).json()["status"] == "ready":
                    break
                await asyncio.sleep(0.05)
            found = (await client.post("/v1/retrieve", json={"agent": "a", "query": "water"})).json()
            await client.get("/metrics")
    print(json.dumps({"mode": found["mode"], "modules": sorted(sys.modules)}))

asyncio.run(main())
"""


TALK = """
import logging, sys, uvicorn
from app import logs
from app.main import create_app
from app.settings import Settings

logs.as_json(logging.DEBUG)
logging.getLogger().setLevel(logging.DEBUG)
for name in ("httpx", "httpcore", "wordllama", "alembic", "uvicorn.access"):
    logging.getLogger(name).setLevel(logging.DEBUG)
uvicorn.run(create_app(Settings()), port=int(sys.argv[1]), log_config=None, access_log=True)
"""


class Talkative(Service):
    """The same service, but it logs everything that it can be made to log."""

    program = (sys.executable, "-c", TALK)


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with new_home() as home:
        yield home


@pytest.fixture(scope="module")
def service(home: Path) -> Iterator[Service]:
    with Service(home) as service:
        yield service


def test_serving_loads_neither_torch_nor_matplotlib(home: Path):
    ran = subprocess.run(
        (sys.executable, "-c", LOOP), env=surroundings(home), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    done = json.loads(ran.stdout.splitlines()[-1])
    assert done["mode"] == "hybrid"
    assert not {"torch", "matplotlib", "pandas", "scipy"} & set(done["modules"])


def test_a_service_that_has_retrieved_fits_in_250_mb(service: Service):
    with service.client("heavy") as client:
        last = [retain(client, f"archive the invoices of customer {n}") for n in range(50)][-1]
        worked(client, last)
        for n in range(30):
            assert retrieve(client, f"invoices of customer {n}")["mode"] == "hybrid"
    assert psutil.Process(service.process.pid).memory_info().rss <= 250 * 2**20


def test_only_the_owner_can_read_the_secrets(service: Service):
    assert stat.S_IMODE((service.home / "secrets.json").stat().st_mode) == 0o600
    assert not list(service.home.glob("secrets.[0-9]*"))


def test_every_stage_is_timed_and_the_queue_is_counted(service: Service):
    with service.client("counted") as client:
        worked(client, retain(client, "count the stages"))
        retrieve(client, "count the stages")
        said = client.get("/metrics").text
    samples = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(said)
        for sample in family.samples
    }
    stages = (
        "retain.redact retain.insert retrieve retrieve.embed retrieve.candidates retrieve.rank retrieve.log"
        " work work.embed work.finalise"
    )
    for stage in stages.split():
        assert samples["casebank_stage_seconds_count", stage] >= 1
        assert samples["casebank_stage_seconds_bucket", "+Inf", stage] >= 1
    for status in ("pending", "dead"):
        assert samples["casebank_queue_cases", status] == 0
    assert samples["casebank_retrievals_total", "hybrid"] >= 1
    assert samples["casebank_worker_cases_total", "ready"] >= 1


def test_metrics_name_no_user_agent_or_task(service: Service):
    with service.client("nameless-user") as client:
        worked(client, retain(client, "unspeakable task", agent="unspoken-agent"))
        said = client.get("/metrics").text
    assert not [word for word in ("nameless-user", "unspeakable", "unspoken-agent") if word in said]


SECRETS = {
    "e-mail": "mallory.quill@example.org",
    "card": "4242 4242 4242 4242",
    "cloud key": "AKIA" + "Z7QJ4M2TXW5KBN3R",
    "forge token": "ghp_" + "R8sK2vQx7LmZp4TnYb6WcJd1HfGaEu9XoVi3",
    "password": "postgresql://admin:hunter2-Tr0ub4dor@db.example.org/shop",
}


def test_no_secret_reaches_the_log_even_at_its_most_talkative(home: Path):
    with Talkative(home) as service, service.client("careless") as client:
        token = client.headers["authorization"].split()[1]
        for secret in SECRETS.values():
            traces = [{"tool": "shell", "input": {"line": secret}, "output": secret}]
            turns = [{"role": "user", "content": secret}]
            worked(client, retain(client, f"use {secret}", plan=[secret], tool_traces=traces, turns=turns))
            retrieve(client, f"use {secret}")
            client.post("/v1/retain", json={"agent": "a", "task": secret, "outcome": secret})
            client.post("/v1/retrieve", json={"agent": secret, "query": secret, secret: secret})
    logged = service.log.read_text()
    assert "work.finalise" in logged  # or it was not talkative at all
    assert "retrieve.embed" in logged
    kept = Settings(home=home)
    for secret in [
        *SECRETS.values(),
        "hunter2-Tr0ub4dor",
        token,
        kept.home_secrets.jwt_secret,
        kept.master_key_bytes.hex(),
    ]:
        assert secret not in logged
        assert secret not in (home / "postgres.log").read_text()


def test_the_log_is_one_json_object_a_line(service: Service):
    httpx.get(f"{service.url}/nowhere")
    welcome, *lines = service.log.read_text().splitlines()
    assert service.url in welcome
    events = [json.loads(line) for line in lines]
    assert {"event", "level", "timestamp"} <= set.intersection(*(set(event) for event in events))
    assert any("startup complete" in event["event"] for event in events)
