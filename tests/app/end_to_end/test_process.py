"""What the service is as a process: how it is started and stopped, what it loads, weighs, logs and counts."""

import json
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.settings import Settings
from tests.processes import (
    ROOT,
    Service,
    get,
    migrated_home,
    postmaster_pid,
    retain,
    retrieve,
    surroundings,
    until,
    worked,
)

LOOP = """
import asyncio, json, sys
import httpx
from app.auth.tokens import issue_token
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

logs.as_json("debug")
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
    with migrated_home() as home:
        yield home


@pytest.fixture(scope="module")
def service(home: Path) -> Iterator[Service]:
    with Service(home) as service:
        yield service


def test_serving_a_migrated_home_loads_no_matplotlib_and_no_alembic(home: Path):
    ran = subprocess.run(
        (sys.executable, "-c", LOOP), env=surroundings(home), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    done = json.loads(ran.stdout.splitlines()[-1])
    assert done["mode"] == "hybrid"
    assert not {"matplotlib", "pandas", "scipy", "alembic"} & set(done["modules"])


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
        until(lambda: ("casebank_stage_seconds_count", "work") in samples_of(client))  # a case is ready before that
        samples = samples_of(client)
    stages = (
        "retain.redact retain.seal retain.insert retrieve retrieve.embed retrieve.candidates retrieve.rank retrieve.log"
        " work work.embed work.finalise"
    )
    for stage in stages.split():
        assert samples["casebank_stage_seconds_count", stage] >= 1
        assert samples["casebank_stage_seconds_bucket", "+Inf", stage] >= 1
    for status in ("pending", "dead"):
        assert samples["casebank_queue_cases", status] == 0
    assert samples["casebank_retrievals_total", "hybrid"] >= 1
    assert samples["casebank_worker_cases_total", "ready"] >= 1


def samples_of(client: httpx.Client) -> dict[tuple[str, ...], float]:
    """Returns the value of each sample of the service, by its name and the values of its labels."""
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(client.get("/metrics").text)
        for sample in family.samples
    }


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
    get(f"{service.url}/nowhere")
    welcome, *lines = service.log.read_text().splitlines()
    assert service.url in welcome
    events = [json.loads(line) for line in lines]
    assert {"event", "level", "timestamp"} <= set.intersection(*(set(event) for event in events))
    assert any("startup complete" in event["event"] for event in events)


def test_a_request_that_never_ends_does_not_keep_the_service_from_stopping():
    with migrated_home() as home, Service(home, CASEBANK_TIMEOUTS_S="stop=1") as service:
        head = "POST /v1/retain HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n"
        bearer = service.bearer("slow")["Authorization"]
        with socket.create_connection(("127.0.0.1", service.port)) as stalled:
            stalled.sendall(f"{head}Content-Type: application/json\r\nAuthorization: {bearer}\r\n\r\n{{".encode())
            with service.client("quick") as client:
                retain(client, "answered while the other one waits")
            service.end(signal.SIGTERM)
        assert postmaster_pid(home) is None


def test_every_stage_is_logged_at_the_level_debug():
    with migrated_home() as home, Service(home, CASEBANK_LOG_LEVEL="debug") as service:
        with service.client("watched") as client:
            worked(client, retain(client, "watch the stages"))
            retrieve(client, "watch the stages")
        wanted = {"retain.redact", "retain.insert", "work.embed", "work.finalise", "retrieve.rank", "retrieve.log"}
        until(lambda: wanted <= {json.loads(line)["event"] for line in service.log.read_text().splitlines()[1:]})
