"""casebank as a running service, the memory of a closed loop: the agent reads only the ``memory_context``."""

import asyncio
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import orjson

from app.demo.memory_text import parse_cases
from app.processes.own_service import OwnService, own_service
from app.settings import Settings
from bench.measure import Measurement
from bench.replay.loops import Loop, Plan, World, play
from bench.replay.numbers import stored
from bench.replay.runs import Call, Run

READY_S = 60
"""Longest wait for a run's lessons, in seconds."""
POLL_S = 0.01


@dataclass(frozen=True, slots=True)
class First:
    """First procedure and first case of one text: true if it is from runs of the task's kind."""

    procedure: bool
    case: bool


@dataclass(slots=True)
class ServedBank:
    """The runs of one agent, kept by the service; a run is told with its plan's calls as JSON, a call a line.

    Attributes:
        firsts: first procedure and first case of the last text of each run, if the text had both.
    """

    client: httpx.Client
    agent: str
    firsts: list[First] = field(default_factory=list)
    _kinds: dict[str, str] = field(default_factory=dict)
    """Kind of each kept run by the id of its case."""
    _asked: str = ""
    _answer: Mapping[str, Any] = field(default_factory=dict)

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
        self._look_at_first(run.kind)
        sent = stored(run)
        plan = [orjson.dumps({"tool": call.tool, "input": call.input}).decode() for call in run.calls if call.ok]
        body = {"task": sent.task, "plan": plan, "tool_traces": sent.tool_traces, "outcome": sent.outcome}
        kept = self._post("/v1/retain", {**body, "retrieval_id": self._answer.get("retrieval_id")})["case_id"]
        self._kinds[kept] = run.kind
        until = time.monotonic() + READY_S
        while self._get(f"/v1/cases/{kept}")["lessons"] == "pending":
            if time.monotonic() > until:
                raise TimeoutError(f"the service has not learned from a run within {READY_S} s")
            time.sleep(POLL_S)
        self._asked, self._answer = "", {}

    def _look_at_first(self, kind: str) -> None:
        cases = self._answer.get("cases")
        told = [each["id"] for each in self._answer.get("procedures", ()) if each["kind"] == "script"]
        if told and cases:
            sources = self._get(f"/v1/procedures/{told[0]}")["source_case_ids"]
            [(taught, _)] = Counter(self._kinds[each] for each in sources).most_common(1)
            self.firsts.append(First(taught == kind, self._kinds[cases[0]["case_id"]] == kind))

    def _get(self, path: str) -> dict[str, Any]:
        return dict(self.client.get(path).raise_for_status().json())

    def _post(self, path: str, body: Mapping[str, object]) -> dict[str, Any]:
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        answer = self.client.post(path, json={"agent": self.agent, **body}, headers=headers).raise_for_status()
        return dict(answer.json())


def _call(line: str) -> Call:
    """Returns the call of a told line."""
    return Call(**orjson.loads(line), output="done", ok=True)


@dataclass(frozen=True, slots=True)
class Served:
    """Closed loops through the service.

    Attributes:
        loops: the loops of each world's seeds by the world's name.
        firsts: first procedures and first cases of the texts of each world.
    """

    loops: Mapping[str, Sequence[Loop]]
    firsts: Mapping[str, Sequence[First]]

    def rows(self) -> list[Measurement]:
        """Returns the share of texts whose first procedure is right, for each world, beside that of first cases."""
        return [
            Measurement(
                f"{name}, service: first procedure of the task's kind",
                float(np.mean([each.procedure for each in firsts])),
                "",
                f"first case of the same {len(firsts)} texts {np.mean([each.case for each in firsts]):.3f}",
            )
            for name, firsts in self.firsts.items()
            if firsts
        ]


async def played(home: Path, worlds: Sequence[World], seeds: Sequence[int]) -> Served:
    """Returns the loops of each world; each seed has a user of its own in one service."""
    loops, firsts = defaultdict[str, list[Loop]](list), defaultdict[str, list[First]](list)
    async with own_service(Settings(home=home)) as service:
        for world in worlds:
            for seed in seeds:
                loop, first = await asyncio.to_thread(_play, service, world, seed)
                loops[world.name].append(loop)
                firsts[world.name] += first
    return Served(loops, firsts)


def _play(service: OwnService, world: World, seed: int) -> tuple[Loop, Sequence[First]]:
    headers = service.headers(f"{world.name}-{seed}")
    with httpx.Client(base_url=service.base_url, headers=headers, timeout=READY_S) as client:
        bank = ServedBank(client, world.name)
        return play(world, bank, seed), bank.firsts
