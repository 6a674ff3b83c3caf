"""Harm of a flood to others: answers to a bystander, memory held by stalled clients, time until they are gone."""

import asyncio
import os
import socket
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import psutil

from app.edge.open_files import allow_files
from app.processes.own_service import OwnService, own_service
from app.settings import Connections
from bench.bank import empty, settings_of
from bench.hostile import costly_runs
from bench.measure import Measurement, p50, timed_ms

IDLE_S, ATTACK_S = 3.0, 3.0
EVERY_S = 0.005
ATTACKERS = 2
"""Attackers at a time, each with a connection of its own."""
STALLED, STALLED_S = 60, 3.0
SLOW, SLOW_PATIENCE_S, DRIP_S = 3_000, 30.0, 1.0
OTHERS = 1_000
STRANGER = "empty lists, without a token"
MEGABYTE = 1024 * 1024


async def flood(home: Path) -> list[Measurement]:
    """Measures a bystander's answers under each hostile body, and the memory and time that stalled clients hold."""
    allow_files(SLOW + OTHERS)
    url = await empty(home, "bench_flood")
    own = settings_of(home, url, os.urandom(32))
    wide = own.model_copy(update={"connections": Connections(total=SLOW + OTHERS, per_address=0)})
    async with own_service(wide) as service:
        under = await _under_attack(service)
        return [*under, await _stalled(service), await _slow_heads(service)]


async def _under_attack(service: OwnService) -> list[Measurement]:
    """Returns the ratio of a bystander's median under each body to the one in idle times, and the longest answer."""
    bodies = costly_runs()
    attacks = {name: _request(service, body, "mallory") for name, body in bodies.items()}
    attacks[STRANGER] = _request(service, bodies["empty lists"], None)
    async with asyncio.timeout(60):  # starts the processes that check bodies
        await _attacked(service, attacks["tiny texts"], ATTACK_S)
    idle = await _bystander(service, IDLE_S)
    measured, longest = [], 0.0
    for name, request in attacks.items():
        answered, times = await asyncio.gather(_attacked(service, request, ATTACK_S), _bystander(service, ATTACK_S))
        longest = max(longest, *times)
        answers = ", ".join(f"{number} x {status}" for status, number in sorted(answered.items())) or "none yet"
        detail = (
            f"p50 {p50(times):.1f} ms, max {max(times):.0f} ms; idle p50 {p50(idle):.1f} ms, max {max(idle):.0f} ms;"
            f" answers to {ATTACKERS} attackers in {ATTACK_S:g} s: {answers}"
        )
        measured.append(Measurement(f"healthz p50 / idle: {name}", p50(times) / p50(idle), "x", detail, aim=10))
    return [*measured, Measurement("healthz, the longest of all these", longest, "ms", "", aim=250)]


async def _bystander(service: OwnService, seconds: float) -> list[float]:
    """Returns the milliseconds of each answer to `/healthz`, requested one after another."""
    times: list[float] = []
    reader, writer = await asyncio.open_connection("127.0.0.1", _port(service))

    async def ask() -> None:
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b'{"status":"ok"}')

    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        times.append(await timed_ms(ask))
        await asyncio.sleep(EVERY_S)
    writer.close()
    return times


async def _attacked(service: OwnService, request: bytes, seconds: float) -> Counter[int]:
    """Returns the number of answers by status to attackers that repeat the request."""
    until = time.perf_counter() + seconds
    # in threads, which need Python's lock for hardly anything: the bystander's times are the service's
    attackers = [asyncio.to_thread(_attack, _port(service), request, until) for _ in range(ATTACKERS)]
    return sum(await asyncio.gather(*attackers), Counter())


def _attack(port: int, request: bytes, until: float) -> Counter[int]:
    answered: Counter[int] = Counter()
    with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rb") as answers:
        while (left := until - time.perf_counter()) > 0:
            connection.settimeout(left)
            try:
                connection.sendall(request)
                status = _status(answers)
            except OSError:
                break
            if status is None:
                break
            answered[status] += 1
    return answered


def _status(answers: BinaryIO) -> int | None:
    """Reads one answer whole, and returns its status, or None at the end of the connection."""
    if not (first := answers.readline()):
        return None
    length = 0
    while (line := answers.readline().lower()).strip():
        if line.startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
    answers.read(length)
    return int(first.split()[1])


async def _stalled(service: OwnService) -> Measurement:
    """Returns the memory held by clients that send nearly all of a large body, and stop."""
    body = costly_runs()["tiny texts"]
    requests = [_request(service, body, f"user-{number}", missing=1) for number in range(STALLED)]
    before = _resident(service)
    with _connected(service, STALLED) as clients:
        most, sent = before, await asyncio.to_thread(_send_what_goes, clients, requests)
        until = time.perf_counter() + STALLED_S
        while time.perf_counter() < until:
            most = max(most, _resident(service))
            await asyncio.sleep(0.05)
    detail = f"{STALLED} clients of as many users, {sent / MEGABYTE:.0f} MiB taken from them; before {before:.0f} MiB"
    return Measurement("held by clients that stop halfway", most - before, "MiB", detail, aim=40)


def _send_what_goes(clients: Sequence[socket.socket], requests: Sequence[bytes]) -> int:
    """Sends each request as far as the server reads within the time, and returns the number of bytes sent."""
    sent = [0] * len(clients)
    until = time.perf_counter() + STALLED_S
    while time.perf_counter() < until:
        for number, (client, request) in enumerate(zip(clients, requests, strict=True)):
            with suppress(BlockingIOError):
                sent[number] += client.send(memoryview(request)[sent[number] : sent[number] + MEGABYTE])
        time.sleep(0.01)
    return sum(sent)


async def _slow_heads(service: OwnService) -> Measurement:
    """Returns the seconds until the last client is gone that sends an endless head, line by line."""
    started = time.perf_counter()
    with _connected(service, SLOW) as clients:
        connected_s = time.perf_counter() - started
        gone_s = await asyncio.to_thread(_drip_until_gone, list(clients), started)
    detail = f"{SLOW:,} clients, connected within {connected_s:.1f} s, each with a line every {DRIP_S:g} s"
    return Measurement("time until slow heads are gone", gone_s, "s", detail, aim=15)


def _drip_until_gone(clients: list[socket.socket], started: float) -> float:
    for client in clients:
        client.send(b"GET /healthz HTTP/1.1\r\n")
    while clients and time.perf_counter() - started < SLOW_PATIENCE_S:
        time.sleep(DRIP_S)
        clients = [client for client in clients if _is_open(client)]
    return time.perf_counter() - started


def _is_open(client: socket.socket) -> bool:
    """Sends another line, and returns whether the connection is still open."""
    try:
        client.send(b"X-Slow: yes\r\n")
        client.recv(65_536)  # an answer or the end means that the server gave up
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


@contextmanager
def _connected(service: OwnService, number: int) -> Iterator[list[socket.socket]]:
    clients: list[socket.socket] = []
    try:
        for _ in range(number):
            clients.append(socket.create_connection(("127.0.0.1", _port(service))))
            clients[-1].setblocking(False)
        yield clients
    finally:
        for client in clients:
            client.close()


def _request(service: OwnService, body: bytes, user: str | None, *, missing: int = 0) -> bytes:
    """Returns the bytes of a retain that announces ``missing`` bytes more than it has."""
    bearer = "" if user is None else f"Authorization: Bearer {service.token(user)}\r\n"
    lines = "POST /v1/retain HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    return f"{lines}Content-Length: {len(body) + missing}\r\n{bearer}\r\n".encode() + body


def _port(service: OwnService) -> int:
    return int(service.base_url.rpartition(":")[2])


def _resident(service: OwnService) -> float:
    """Returns the resident memory of the service, in MiB."""
    return float(psutil.Process(service.pid).memory_info().rss) / MEGABYTE
