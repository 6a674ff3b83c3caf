"""casebank as a running service, the memory of a closed loop: the agent reads only the ``memory_context``."""

import asyncio
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import orjson

from app.demo.memory_text import parse_cases
from app.processes.own_service import OwnService, own_service
from app.settings import Settings
from bench.replay.loops import Loop, Plan, World, play
from bench.replay.numbers import stored
from bench.replay.runs import Call, Run

READY_S = 60
"""Longest wait for a run's lessons, in seconds."""
POLL_S = 0.01


@dataclass(slots=True)
class ServedBank:
    """The runs of one agent, kept by the service; a run is told with its plan's calls as JSON, a call a line."""

    client: httpx.Client
    agent: str
    _asked: str = ""
    _answer: Mapping[str, str] = field(default_factory=dict)

    def recall(self, task: str, error: str | None) -> Sequence[Plan]:  # noqa: ARG002 - the protocol's
        """Returns the plans of the runs in the ``memory_context`` that went well, in the order of the text."""
        if task != self._asked:
            self._asked, self._answer = task, self._post("/v1/retrieve", {"query": task})
        return [
            tuple(_call(action) for action in case.actions)
            for case in parse_cases(self._answer["memory_context"])
            if case.went_well
        ]

    def keep(self, run: Run) -> None:
        """Retains the run, and waits until the service has learned from it."""
        sent = stored(run)
        plan = [orjson.dumps({"tool": call.tool, "input": call.input}).decode() for call in run.calls if call.ok]
        body = {"task": sent.task, "plan": plan, "tool_traces": sent.tool_traces, "outcome": sent.outcome}
        kept = self._post("/v1/retain", {**body, "retrieval_id": self._answer.get("retrieval_id")})["case_id"]
        until = time.monotonic() + READY_S
        while self.client.get(f"/v1/cases/{kept}").raise_for_status().json()["lessons"] == "pending":
            if time.monotonic() > until:
                raise TimeoutError(f"the service has not learned from a run within {READY_S} s")
            time.sleep(POLL_S)
        self._asked, self._answer = "", {}

    def _post(self, path: str, body: Mapping[str, object]) -> dict[str, str]:
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        answer = self.client.post(path, json={"agent": self.agent, **body}, headers=headers).raise_for_status()
        return dict(answer.json())


def _call(line: str) -> Call:
    """Returns the call of a told line."""
    return Call(**orjson.loads(line), output="done", ok=True)


async def played(home: Path, worlds: Sequence[World], seeds: Sequence[int]) -> dict[str, list[Loop]]:
    """Returns the loops of each world's seeds by its name; each seed has a user of its own in one service."""
    async with own_service(Settings(home=home)) as service:
        return {
            world.name: [await asyncio.to_thread(_play, service, world, seed) for seed in seeds] for world in worlds
        }


def _play(service: OwnService, world: World, seed: int) -> Loop:
    headers = service.headers(f"{world.name}-{seed}")
    with httpx.Client(base_url=service.base_url, headers=headers, timeout=READY_S) as client:
        return play(world, ServedBank(client, world.name), seed)
