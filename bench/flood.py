"""A client that floods: many connections, each sending the next request as soon as the last is answered.

It runs as a process of its own, at the lowest priority, and does little but send, so that any slowdown is the
service's.
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
    """A request to send over ``connections`` connections, again and again for ``seconds``.

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
        """Returns the bytes of the request."""
        body = json.dumps(self.body).encode()
        lines = {**self.headers, "Host": "127.0.0.1", "Content-Type": "application/json", "Content-Length": len(body)}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"POST {self.path} HTTP/1.1\r\n{head}\r\n".encode() + body


async def send(flood: Flood) -> Counter[str]:
    """Sends the flood and returns the number of answers by status; ``broken`` counts lost connections."""
    until = asyncio.get_running_loop().time() + flood.seconds
    answers: Counter[str] = Counter()
    await asyncio.gather(*(_one_connection(flood, until, answers) for _ in range(flood.connections)))
    return answers


async def _one_connection(flood: Flood, until: float, answers: Counter[str]) -> None:
    clock = asyncio.get_running_loop().time
    request = flood.request()
    while clock() < until:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", flood.port)
            while clock() < until:
                writer.write(request)
                status, retry_s = await _answer(reader)
                answers[status] += 1
                if flood.polite and retry_s:
                    await asyncio.sleep(min(retry_s, max(0.0, until - clock())))
            writer.close()
        except (OSError, asyncio.IncompleteReadError):
            answers["broken"] += 1
            await asyncio.sleep(0.1)


async def _answer(reader: asyncio.StreamReader) -> tuple[str, float]:
    """Reads one answer; returns its status and the seconds of its ``Retry-After``."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    status, *lines = head.split("\r\n")
    fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    await reader.readexactly(int(fields.get("content-length", 0)))
    return status.split(" ")[1], float(fields.get("retry-after", 0))


@asynccontextmanager
async def beside(flood: Flood) -> AsyncIterator[Counter[str]]:
    """Floods from another process while the block runs; the answers are counted after the block."""
    command = (sys.executable, "-m", "bench.flood")
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    answers: Counter[str] = Counter()
    answered = asyncio.create_task(process.communicate(json.dumps(asdict(flood)).encode()))
    try:
        yield answers
        output, _ = await asyncio.wait_for(asyncio.shield(answered), flood.seconds + STOP_WITHIN_S)
        answers.update(json.loads(output))
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def main() -> None:
    """Reads a flood as JSON, sends it, and prints the number of answers by status."""
    os.nice(19)
    fields: Mapping[str, object] = json.load(sys.stdin)
    print(json.dumps(asyncio.run(send(Flood(**fields)))))  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
