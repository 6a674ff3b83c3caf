"""A client that floods: many connections, each of which sends the next request as soon as the last is answered.

It runs as a process of its own, at the lowest priority, and does next to nothing but send: what it slows down, the
service was made to do.
"""

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass

STOP_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True)
class Flood:
    """What is sent: ``connections`` times, again and again for ``seconds``, and whether a refusal is taken seriously.

    Attributes:
        polite: waits as long as ``Retry-After`` says; otherwise the next request follows at once.
    """

    port: int
    path: str
    headers: dict[str, str]
    body: dict[str, object]
    connections: int
    seconds: float
    polite: bool = False

    def request(self) -> bytes:
        """Returns the request as it goes over the wire."""
        body = json.dumps(self.body).encode()
        lines = {**self.headers, "Host": "127.0.0.1", "Content-Type": "application/json", "Content-Length": len(body)}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"POST {self.path} HTTP/1.1\r\n{head}\r\n".encode() + body


async def send(flood: Flood) -> Counter[str]:
    """Sends the flood and returns how often each status was answered; ``broken`` counts lost connections."""
    until = asyncio.get_running_loop().time() + flood.seconds
    seen: Counter[str] = Counter()
    await asyncio.gather(*(_one_connection(flood, until, seen) for _ in range(flood.connections)))
    return seen


async def _one_connection(flood: Flood, until: float, seen: Counter[str]) -> None:
    clock = asyncio.get_running_loop().time
    request = flood.request()
    while clock() < until:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", flood.port)
            while clock() < until:
                writer.write(request)
                status, retry_s = await _answer(reader)
                seen[status] += 1
                if flood.polite and retry_s:
                    await asyncio.sleep(min(retry_s, max(0.0, until - clock())))
            writer.close()
        except (OSError, asyncio.IncompleteReadError):
            seen["broken"] += 1
            await asyncio.sleep(0.1)


async def _answer(reader: asyncio.StreamReader) -> tuple[str, float]:
    """Reads one answer; returns its status and how many seconds it asks to wait."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    status, *lines = head.split("\r\n")
    fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    await reader.readexactly(int(fields.get("content-length", 0)))
    return status.split(" ")[1], float(fields.get("retry-after", 0))


@asynccontextmanager
async def beside(flood: Flood) -> AsyncIterator[Counter[str]]:
    """Floods while the block runs, from another process; what it was answered is counted once the block has ended."""
    command = (sys.executable, "-m", "bench.flood")
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    seen: Counter[str] = Counter()
    answered = asyncio.create_task(process.communicate(json.dumps(asdict(flood)).encode()))
    try:
        yield seen
        output, _ = await asyncio.wait_for(asyncio.shield(answered), flood.seconds + STOP_WITHIN_S)
        seen.update(json.loads(output))
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def main() -> None:
    """Reads a flood as JSON, sends it, and prints what was answered."""
    os.nice(19)
    given: Mapping[str, object] = json.load(sys.stdin)
    print(json.dumps(asyncio.run(send(Flood(**given)))))  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
