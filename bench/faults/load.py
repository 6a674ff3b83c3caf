"""The load: backends that retrieve, retain and give feedback, each repeating a request until it is acknowledged."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import httpx

from bench.faults.ledger import Acknowledged, Ledger, Reward
from bench.fill import AGENT

PAUSE_S = 0.3
RETRY_S = 0.25
ANSWER_TIMEOUT_S = 20.0
OUTCOMES = ("success", "success", "partial", "failure")
REPEATED, SAYS_WHAT_IT_USED, REWARDED, GETS_FEEDBACK = 0.1, 0.5, 0.5, 0.5
"""Shares of the runs that repeat an earlier run, name used cases, carry a reward, and get a reward later."""

_LATER = {HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS}

Answer = dict[str, Any]


@dataclass
class Backend:
    """One backend of one user; the ledger notes every acknowledgement.

    Attributes:
        name: unique name.
        texts: tasks of its runs, in turn.
        stopped: ends the loop after the current run when set.
        number: number of the next run, a part of its idempotency key.
    """

    name: str
    http: httpx.AsyncClient
    ledger: Ledger
    texts: Sequence[str]
    rng: random.Random
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    number: int = 0

    async def run(self) -> None:
        """Does run after run until ``stopped`` is set; the last run is acknowledged, too."""
        while not self.stopped.is_set():
            await self.one_run()
            await asyncio.sleep(PAUSE_S)

    async def one_run(self) -> None:
        """Retrieves, retains, and for a share of the runs gives feedback."""
        task = self._task()
        shown = await self.ask("/v1/retrieve", {"agent": AGENT, "query": task})
        kept = await self.retain(self._finished(task, shown))
        if kept.retrieval_id is not None and self.rng.random() < GETS_FEEDBACK:
            await self._feedback(kept.retrieval_id)

    async def retain(self, run: Answer) -> Acknowledged:
        """Retains the run under a key of its own until it is acknowledged."""
        while True:
            if (acknowledged := await self.retain_once(run)) is not None:
                return acknowledged
            await asyncio.sleep(RETRY_S)

    async def retain_once(self, run: Answer) -> Acknowledged | None:
        """Sends the run under the next key; None: it was not acknowledged and must be sent again unchanged."""
        key = f"{self.name}-{self.number}"
        answer = await self.ask("/v1/retain", run, {"Idempotency-Key": key})
        if answer is None:
            return None
        acknowledged = Acknowledged(answer["case_id"], answer["retrieval_id"])
        self.ledger.retains[key] = acknowledged
        self.number += 1
        if run.get("retrieval_id") not in {None, acknowledged.retrieval_id}:
            self.ledger.missing.add(run["retrieval_id"])
        return acknowledged

    async def ask(self, path: str, body: Answer, headers: Mapping[str, str] | None = None) -> Answer | None:
        """Posts the body, and returns the answer, or None if the request must be repeated."""
        try:
            answer = await self.http.post(path, json=body, headers=dict(headers or {}))
        except httpx.TransportError:
            self.ledger.requests["no answer"] += 1
            return None
        if answer.is_success:
            self.ledger.requests["ok"] += 1
            return dict(answer.json())
        if answer.status_code in _LATER:
            self.ledger.requests["told to come back"] += 1
        elif answer.status_code == HTTPStatus.NOT_FOUND and path == "/v1/feedback":
            self.ledger.missing.add(body["retrieval_id"])
        else:
            self.ledger.unexpected[f"{path} {answer.status_code} {_type(answer)}"] += 1
        return None

    def _task(self) -> str:
        number = self.number
        if number and self.rng.random() < REPEATED:
            number = self.rng.randrange(number)
        return f"{self.texts[number % len(self.texts)]}, as {self.name} does its number {number}"

    def _finished(self, task: str, shown: Answer | None) -> Answer:
        run: Answer = {
            "agent": AGENT,
            "task": task,
            "outcome": self.rng.choice(OUTCOMES),
            "plan": ["look", "change", "check"],
            "tool_traces": [{"tool": "sql", "input": {"q": task}, "output": "1 row"}],
        }
        if self.rng.random() < REWARDED:
            run |= {"reward": round(self.rng.random(), 2), "reward_source": "metric"}
        if shown is not None:
            run["retrieval_id"] = shown["retrieval_id"]
            if self.rng.random() < SAYS_WHAT_IT_USED:
                run["used_case_ids"] = [slot["case_id"] for slot in shown["cases"] if self.rng.random() < 0.5]  # noqa: PLR2004 - a toss
        return run

    async def _feedback(self, retrieval_id: str) -> None:
        """Rewards the retrieval until the reward is acknowledged, or the retrieval is unknown."""
        reward = round(self.rng.random(), 2)
        feedback = {"retrieval_id": retrieval_id, "reward": reward, "source": "user"}
        sent = 1
        while await self.ask("/v1/feedback", feedback) is None:
            if retrieval_id in self.ledger.missing:
                return
            sent += 1
            await asyncio.sleep(RETRY_S)
        self.ledger.rewards[retrieval_id] = Reward(reward, sent)


def _type(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["type"])
    except (ValueError, KeyError, TypeError):
        return "without a problem document"
