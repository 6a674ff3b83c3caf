"""The root, alive and ready, for anybody; and the numbers, for the operator."""

import json
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import func, update

from app.auth.keys import PublishedKeys
from app.auth.tokens import OPERATOR, TokenVerifier
from app.jobs.records import JobRecords
from app.jobs.schedule import TRAINING, UPKEEP, WORKER
from app.settings.texts import networks
from retrieval.tables.keys import jobs
from tests.service import Service, User

KEY = RSAAlgorithm.to_jwk(rsa.generate_private_key(65537, 2048).public_key(), as_dict=True)


@pytest.fixture
async def anybody(service: Service) -> httpx.AsyncClient:
    return await service.http(None)


async def test_the_root_says_what_this_is_and_where_to_look(service: Service):
    anybody = await service.http(None)
    told = (await anybody.get("/")).json()
    assert told["name"] == "casebank"
    for name in ("documentation", "description", "ready"):
        assert (await anybody.get(told[name])).status_code == 200


async def test_it_says_that_it_lives(anybody: httpx.AsyncClient):
    assert (await anybody.get("/healthz")).json() == {"status": "ok"}


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_a_monitor_that_asks_for_the_head_alone_is_answered(path: str, anybody: httpx.AsyncClient):
    assert (await anybody.head(path)).status_code == 200


async def test_a_ready_service_tells_how_long_ago_each_job_last_succeeded(service: Service, anybody: httpx.AsyncClient):
    records = JobRecords(service.runtime.database)
    for job in (UPKEEP, TRAINING):
        await records.of(job)
    await records.succeeded(UPKEEP)
    await records.failed(TRAINING, "TrainingFailed")
    answer = (await anybody.get("/readyz")).json()
    assert answer["status"] == "ok"
    assert 0 <= answer["jobs"][UPKEEP].pop("last_success_s_ago") < 60
    assert answer["jobs"][UPKEEP] == {"failures_in_a_row": 0, "last_error": None}
    assert answer["jobs"][TRAINING]["last_success_s_ago"] is None
    assert answer["jobs"][TRAINING]["last_error"] == "TrainingFailed"


async def test_a_job_that_failed_or_is_late_is_named_and_takes_nothing_from_those_who_call(
    service: Service, anybody: httpx.AsyncClient
):
    records = JobRecords(service.runtime.database)
    for job in (UPKEEP, TRAINING):
        await records.succeeded(job)
    assert (await anybody.get("/readyz")).json()["late"] == []
    await records.failed(TRAINING, "TrainingFailed")
    answer = await anybody.get("/readyz")
    assert (answer.status_code, answer.json()["late"]) == (200, [TRAINING])
    await records.succeeded(TRAINING)


@pytest.mark.parametrize(("silent_s", "late"), [(30, []), (90, [WORKER]), (429, [WORKER])])
async def test_a_worker_that_gives_no_sign_of_life_although_a_case_waits_is_named(
    service: Service, anybody: httpx.AsyncClient, alice: User, silent_s: int, late: list[str]
):
    case_id = await alice.retain("feed the cat")
    await alice.settle()
    records = JobRecords(service.runtime.database)
    for job in (UPKEEP, TRAINING, WORKER):
        await records.succeeded(job)
    async with service.runtime.database.as_worker() as connection:
        then = func.now() - timedelta(seconds=silent_s)
        await connection.execute(update(jobs).where(jobs.c.name == WORKER).values(last_succeeded=then))
    assert (await anybody.get("/readyz")).json()["late"] == []  # a worker without work gives no sign
    await alice.rows(
        "UPDATE cases SET status = 'pending', attempts = 1, created_at = now() - interval '1 hour',"
        " available_at = now() + interval '1 hour' WHERE user_sub = :user_sub AND id = :id RETURNING id",
        id=case_id,
    )
    answer = await anybody.get("/readyz")
    assert (answer.status_code, answer.json()["late"]) == (200, late)
    await records.succeeded(WORKER)
    await alice.http.delete(f"/v1/cases/{case_id}")


async def test_a_service_whose_issuer_has_never_answered_is_not_ready_until_it_does(service: Service):
    anybody = await service.http(None)
    verifier = service.app.state.verifier
    issuer = OneKey()
    keys = PublishedKeys(issuer.url, refetch_after_s=0)
    try:
        service.app.state.verifier = TokenVerifier(keys, "issuer", "audience")
        answer = await anybody.get("/readyz")
        assert answer.status_code == 503
        assert "issuer" in answer.json()["detail"]
        issuer.answers = True
        assert (await anybody.get("/readyz")).status_code == 200
        issuer.close()  # what was fetched goes on working
        assert (await anybody.get("/readyz")).status_code == 200
    finally:
        service.app.state.verifier = verifier


async def test_the_metrics_count_rewards_decisions_and_what_waits_and_tell_how_large_the_tables_are(
    service: Service, alice: User
):
    anybody = await service.http(None)
    before = await samples(anybody)
    found = await alice.retrieve("feed the cat")
    judged = {"retrieval_id": found["retrieval_id"], "reward": 0.5, "reward_source": "judge"}
    kept = await (await alice.backend()).retain("feed the cat", **judged)
    await alice.feedback(case_id=kept, thumb="up")
    await alice.settle()
    after = await samples(anybody)

    def more(name: str, **labels: str) -> float:
        key = name, frozenset(labels.items())
        return after[key] - before.get(key, 0)

    assert more("casebank_rewards_total", source="judge") == 1
    assert more("casebank_rewards_total", source="user") == 1
    assert more("casebank_decisions_total", policy="default") == 1
    assert after["casebank_queue_oldest_seconds", frozenset()] == 0
    assert after["casebank_queue_cases", frozenset({("status", "dead")})] == 0
    assert after["casebank_table_bytes", frozenset({("table", "cases")})] > 8192


async def samples(anybody: httpx.AsyncClient) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    families = text_string_to_metric_families((await anybody.get("/metrics")).text)
    return {(each.name, frozenset(each.labels.items())): each.value for family in families for each in family.samples}


class OneKey:
    """An issuer of tokens that publishes one key, once it answers at all."""

    def __init__(self) -> None:
        self.answers = False
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200 if owner.answers else 503)
                self.end_headers()
                self.wfile.write(json.dumps({"keys": [{**KEY, "kid": "one", "use": "sig"}]}).encode())

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/keys"
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


async def test_the_metrics_tell_of_every_job_its_failures_and_its_last_success(
    service: Service, anybody: httpx.AsyncClient
):
    await JobRecords(service.runtime.database).of(UPKEEP)
    await JobRecords(service.runtime.database).succeeded(UPKEEP)
    samples = {
        (sample.name, sample.labels.get("job"))
        for family in text_string_to_metric_families((await anybody.get("/metrics")).text)
        for sample in family.samples
    }
    assert {("casebank_job_failures_total", job) for job in (UPKEEP, TRAINING)} <= samples
    assert ("casebank_job_last_success_timestamp_seconds", UPKEEP) in samples


async def asked_from(service: Service, address: str, token: str | None = None, **headers: str) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(service.app, raise_app_exceptions=False, client=(address, 4711))
    client = await service.http(token)
    headers |= {name: value for name, value in client.headers.items() if name == "authorization"}
    return await service.stack.enter_async_context(
        httpx.AsyncClient(transport=transport, base_url="http://casebank", headers=headers)
    )


async def test_a_stranger_sees_that_it_lives_and_is_ready_and_no_numbers(service: Service):
    stranger = await asked_from(service, "192.0.2.1")
    assert (await stranger.get("/healthz")).status_code == 200
    assert (await stranger.get("/readyz")).json() == {"status": "ok"}
    refused = await stranger.get("/metrics")
    assert (refused.status_code, refused.headers["content-type"]) == (401, "application/problem+json")


async def test_a_users_token_shows_no_numbers_and_the_operators_does(service: Service):
    user = await asked_from(service, "192.0.2.1", service.token("ada"))
    assert (await user.get("/metrics")).status_code == 403
    assert (await user.get("/readyz")).json() == {"status": "ok"}
    operator = await asked_from(service, "192.0.2.1", service.token("prometheus", scope=OPERATOR))
    assert "casebank_" in (await operator.get("/metrics")).text
    assert "queue" in (await operator.get("/readyz")).json()


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"])
async def test_a_proxy_on_the_same_machine_is_no_operator(service: Service, header: str):
    proxied = await asked_from(service, "127.0.0.1", **{header: "127.0.0.1"})
    assert (await proxied.get("/metrics")).status_code == 401
    assert (await proxied.get("/readyz")).json() == {"status": "ok"}


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.0.1", "::1", "::ffff:127.0.0.1"])
async def test_the_machine_itself_sees_the_numbers(service: Service, address: str):
    assert (await (await asked_from(service, address)).get("/metrics")).status_code == 200


async def test_a_page_that_points_its_own_name_at_this_machine_sees_no_numbers(service: Service):
    local = await asked_from(service, "127.0.0.1")
    hosts = {"evil.example": 401, "evil.example:8700": 401, "localhost.evil.example": 401, "[": 401, "": 401}
    hosts |= {"localhost:8700": 200, "127.0.0.1:8700": 200, "[::1]:8700": 200, "casebank:8700": 200}
    for host, status in hosts.items():
        assert (await local.get("/metrics", headers={"Host": host})).status_code == status, host
        assert ("queue" in (await local.get("/readyz", headers={"Host": host})).json()) is (status == 200), host


async def test_a_page_that_points_its_own_name_at_a_machine_of_the_operators_networks_sees_no_numbers(service: Service):
    service.app.state.operator_networks = networks("10.0.0.0/8")
    try:
        near = await asked_from(service, "10.1.2.3")
        hosts = {"evil.example": 401, "svc.evil.example": 401, "10.9.8.7:8700": 200, "casebank:8700": 200}
        hosts |= {"casebank.memory.svc:8700": 200, "casebank.memory.svc.cluster.local": 200, "casebank.internal": 200}
        for host, status in hosts.items():
            assert (await near.get("/metrics", headers={"Host": host})).status_code == status, host
    finally:
        service.app.state.operator_networks = networks(service.settings.operator_from)
