"""What an operator sees of requests: an id each, a count by route and status, a line for every one that is refused."""

import hashlib
from typing import Any
from uuid import uuid4

from prometheus_client import REGISTRY
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from tests.service import AGENT, Service, User


def lines(logged: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line for line in logged if line["event"] == "request.refused"]


async def test_every_refused_request_is_a_line_with_status_type_and_a_hash_of_the_user(alice: User):
    secret = f"nobody-reads-{uuid4()}"
    with capture_logs(processors=[merge_contextvars]) as logged:
        missing = await alice.http.get(f"/v1/cases/{uuid4()}")
        invalid = await alice.http.post("/v1/retain", json={"agent": AGENT, "tsak": secret})
        nowhere = await alice.http.get(f"/{secret}")
        served = await alice.http.get("/v1/cases")
    assert served.is_success
    digest = hashlib.sha256(alice.name.encode()).hexdigest()[:16]
    told = [(line["status"], line["type"], line["route"], line["request_id"]) for line in lines(logged)]
    assert told == [
        (404, "not-found", "/v1/cases/{case_id}", missing.headers["X-Request-Id"]),
        (422, "invalid-request", "/v1/retain", invalid.headers["X-Request-Id"]),
        (404, "not-found", "other", nowhere.headers["X-Request-Id"]),
    ]
    assert lines(logged)[0]["user"] == digest
    assert {line["log_level"] for line in lines(logged)} == {"info"}
    assert secret not in str(logged)
    assert alice.name not in str(logged)


async def test_a_body_that_is_too_large_and_a_caller_without_a_token_are_told_of_as_well(service: Service):
    anybody = await service.http(None)
    with capture_logs(processors=[merge_contextvars]) as logged:
        await anybody.get("/v1/cases")
        await anybody.post("/v1/retain", content=b"x" * (service.settings.max_body_bytes + 1))
    assert lines(logged)[0]["status"] == 401
    assert len(lines(logged)) == 2


async def test_the_callers_own_id_is_kept_if_it_is_fit_for_a_log(alice: User):
    kept = await alice.http.get("/healthz", headers={"X-Request-Id": "a-b.c_1"})
    assert kept.headers["X-Request-Id"] == "a-b.c_1"
    for unfit in ("", "two words", "x" * 65, '{"event": 1}', "\u00e9".encode()):
        answer = await alice.http.get("/healthz", headers={"X-Request-Id": unfit})
        assert answer.headers["X-Request-Id"].encode() not in {unfit, str(unfit).encode()}


async def test_requests_are_counted_by_route_and_status_and_refusals_by_type(alice: User):
    def counted(name: str, **labels: str) -> float:
        return REGISTRY.get_sample_value(f"casebank_{name}_total", labels) or 0

    route = {"method": "GET", "route": "/v1/cases/{case_id}", "status": "404"}
    before = counted("requests", **route), counted("refusals", type="not-found")
    await alice.http.get(f"/v1/cases/{uuid4()}")
    assert (counted("requests", **route), counted("refusals", type="not-found")) == (before[0] + 1, before[1] + 1)


async def test_made_up_paths_and_methods_add_no_series(alice: User):
    def series() -> set[tuple[str, str]]:
        (metric,) = [each for each in REGISTRY.collect() if each.name == "casebank_requests"]
        return {(sample.labels["method"], sample.labels["route"]) for sample in metric.samples}

    await alice.http.request("BREW", "/pot")
    before = series()
    for _ in range(3):
        await alice.http.request(uuid4().hex[:8].upper(), f"/{uuid4()}")
    assert series() == before


async def test_the_id_of_a_retain_is_in_the_workers_lines_about_its_case(alice: User):
    with capture_logs(processors=[merge_contextvars]) as logged:
        headers = {"X-Request-Id": "from-the-backend"}
        body = {"agent": AGENT, "task": "water the plants", "outcome": "success"}
        kept = (await alice.http.post("/v1/retain", json=body, headers=headers)).json()["case_id"]
        other = await alice.retain("mow the lawn")
        await alice.settle()
    ended = {line["case_id"]: line for line in logged if line["event"] == "work.ended"}
    assert (ended[kept]["how"], ended[kept]["request_id"]) == ("ready", "from-the-backend")
    assert ended[other]["request_id"] != "from-the-backend"
    assert "water" not in str(logged)
