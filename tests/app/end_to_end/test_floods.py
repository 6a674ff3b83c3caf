"""Floods over real sockets: hostile bodies, and clients that send nothing more."""

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import psutil
import pytest

from bench.hostile import costly_runs
from tests.processes import ANSWER_S, Service, alive, migrated_home, retain, until, worked

NAMES = tuple(costly_runs(1_000))
"""Names of the costly bodies; those of the tests are made when one runs, since they fill 60 MB."""
COMPLEX = {"empty lists", "nesting", "tiny texts", "many keys", "unknown fields", "invalid traces"}
INVALID = {"invalid traces, as many as may be"}
LARGE = 3_900_000
MOST_FROM_ONE_ADDRESS = 60


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    limits = {
        "CASEBANK_CONNECTIONS": f"per_address={MOST_FROM_ONE_ADDRESS}",
        "CASEBANK_TIMEOUTS_S": "headers=3,body=60,body_check=0.7",
    }
    with migrated_home() as home, Service(home, **limits) as service:
        yield service


@pytest.fixture(scope="module")
def costly() -> dict[str, bytes]:
    return costly_runs()


def post(client: httpx.Client, body: bytes) -> httpx.Response:
    return client.post("/v1/retain", content=body, headers={"Content-Type": "application/json"})


def head(service: Service, user: str | None, size: int = LARGE) -> bytes:
    """The head of a retain whose body is to come."""
    bearer = "" if user is None else f"Authorization: {service.bearer(user)['Authorization']}\r\n"
    lines = f"POST /v1/retain HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n"
    return f"{lines}{bearer}\r\n".encode()


def kind(answer: httpx.Response) -> str:
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.json()["type"].rpartition(":")[2]


def checked(client: httpx.Client, body: bytes) -> httpx.Response:
    """Sends a body until its check keeps within the budget, which a busy machine may not let it do at once."""

    def sent() -> httpx.Response | None:
        answer = post(client, body)
        return None if answer.status_code == 413 and kind(answer) == "body-too-costly" else answer

    return until(sent)


@pytest.mark.parametrize("name", NAMES)
def test_a_costly_body_is_kept_or_refused_and_says_why(name: str, service: Service, costly: dict[str, bytes]):
    with service.client("mallory") as client:
        answer = (checked if name in COMPLEX | INVALID else post)(client, costly[name])
    if name in COMPLEX:
        assert (answer.status_code, kind(answer)) == (413, "body-too-complex")
    elif name in INVALID:
        assert (answer.status_code, kind(answer)) == (422, "invalid-request")
        assert len(answer.json()["errors"]) == 20
    else:
        assert answer.status_code == 202 or (answer.status_code, kind(answer)) == (413, "body-too-costly")


def test_others_are_served_while_a_costly_body_is_under_way(service: Service, costly: dict[str, bytes]):
    with ThreadPoolExecutor() as pool, service.client("mallory") as attacker, service.client("alice") as bystander:
        post(attacker, costly["e-mail addresses"])  # the process that checks it is there
        checked = pool.submit(post, attacker, costly["numbers that are no telephones"])
        served = 0
        while not checked.done():
            assert bystander.get("/healthz").status_code == 200
            retain(bystander, "water the garden")
            served += not checked.done()
        assert checked.result().status_code == 413
        assert served > 1
        worked(bystander, retain(bystander, "water the garden again"))


def test_a_stranger_is_refused_before_the_body_is_sent(service: Service):
    with socket.create_connection(("127.0.0.1", service.port)) as stranger:
        stranger.sendall(head(service, None))
        assert stranger.recv(1_000).startswith(b"HTTP/1.1 401 ")


def test_a_stranger_who_sends_a_body_all_the_same_is_refused_and_may_go_on(service: Service, costly: dict[str, bytes]):
    with httpx.Client(base_url=service.url, timeout=ANSWER_S) as stranger:
        for _ in range(3):
            assert post(stranger, costly["empty lists"]).status_code == 401
        assert stranger.get("/healthz").status_code == 200


def test_whoever_waits_for_permission_to_send_is_refused_without_it(service: Service):
    with socket.create_connection(("127.0.0.1", service.port)) as stranger:
        stranger.sendall(head(service, None).replace(b"Host: x", b"Host: x\r\nExpect: 100-continue"))
        assert stranger.recv(1_000).startswith(b"HTTP/1.1 401 ")


def test_clients_that_stop_halfway_leave_room_for_the_large_run_of_another(service: Service):
    stalled = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(20)]
    try:
        for client in stalled:
            client.sendall(head(service, "mallory") + b'{"agent":')
        with service.client("alice") as client:
            run = {
                "agent": "a",
                "task": "water",
                "outcome": "success",
                "prompt_snapshot": "clear water " * (LARGE // 12 - 100),
            }
            assert checked(client, json.dumps(run).encode()).status_code == 202
    finally:
        for client in stalled:
            client.close()


def test_a_head_that_stops_is_answered_and_closed(service: Service):
    with socket.create_connection(("127.0.0.1", service.port)) as slow:
        slow.sendall(b"GET /healthz HTTP/1.1\r\nHost")
        answer = b""
        while more := slow.recv(1_000):
            answer += more
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["type"] == "urn:casebank:problem:too-slow"


def test_no_address_gets_more_connections_than_its_share(service: Service):
    until(lambda: not _connections(service))
    inside = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(MOST_FROM_ONE_ADDRESS)]
    try:
        with socket.create_connection(("127.0.0.1", service.port)) as outside:
            assert outside.recv(1_000).startswith(b"HTTP/1.1 503 ")
    finally:
        for client in inside:
            client.close()
    until(lambda: _is_served(service))


def _connections(service: Service) -> list[object]:
    """Returns the connections that the service has not closed, those of clients that are gone included."""
    open_now = psutil.Process(service.process.pid).net_connections("tcp")
    return [each for each in open_now if each.raddr and each.laddr.port == service.port]


def _is_served(service: Service) -> bool:
    with httpx.Client(base_url=service.url, timeout=ANSWER_S) as client:
        return client.get("/healthz").status_code == 200


def test_the_processes_that_check_bodies_end_with_the_service(service: Service):
    with service.client("alice") as client:
        retain(client, "water the garden", prompt_snapshot="clear water " * 1_000)
    (checks,) = _checking(service.process.pid)
    service.kill()  # the last test of this file
    until(lambda: not alive(checks))


def _checking(service_pid: int) -> list[int]:
    below = psutil.Process(service_pid).children()
    return [process.pid for process in below if "side_process" in " ".join(process.cmdline())]
