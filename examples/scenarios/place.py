"""The place of a scenario: a running casebank, tokens of its users, and promises that must hold."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import typer
from casebank_client import Casebank

ANALYSED_WITHIN_S = 60.0
TIMEOUT_S = 30.0


class PromiseBroken(Exception):
    """A sentence that a scenario ends with does not hold."""


class NotHere(Exception):
    """A program that a scenario needs is not on this machine."""


@dataclass(frozen=True, slots=True)
class Place:
    """Address of a running casebank, and one token for each user of the scenario."""

    base_url: str
    tokens: tuple[str, ...]

    def http(self, user: int = 0) -> httpx.Client:
        """Returns a plain HTTP client with the user's token."""
        headers = {"Authorization": f"Bearer {self.tokens[user]}"}
        return httpx.Client(base_url=self.base_url, headers=headers, timeout=TIMEOUT_S)

    def client(self, user: int = 0) -> Casebank:
        """Returns casebank's Python client with the user's token."""
        return Casebank(self.base_url, self.tokens[user])


def new_name(stem: str) -> str:
    """Returns a name for an agent, a session or a run that no earlier scenario has used."""
    return f"{stem}-{uuid4().hex[:8]}"


def ask(http: httpx.Client, method: str, path: str, **body: Any) -> Any:
    """Sends one request with a JSON body and returns the JSON of its answer.

    Raises:
        PromiseBroken: casebank refused the request.
    """
    answer = http.request(method, path, json=body or None)
    if answer.is_error:
        raise PromiseBroken(f"{method} {path} answered {answer.status_code}: {answer.text}")
    return answer.json() if answer.content else None


def analysed(http: httpx.Client, agent: str) -> None:
    """Waits until the agent's newest runs can be found and the worker has learned from them."""
    newest = f"/v1/cases?status=any&limit=50&agent={agent}"
    wait_until(lambda: all(case["lessons"] != "pending" for case in ask(http, "GET", newest)["cases"]))


def wait_until(holds: Callable[[], object]) -> None:
    """Waits until the condition holds.

    Raises:
        PromiseBroken: it does not within a minute.
    """
    deadline = time.monotonic() + ANALYSED_WITHIN_S
    while not holds():
        if time.monotonic() > deadline:
            raise PromiseBroken(f"casebank was not done within {ANALYSED_WITHIN_S:.0f} s")
        time.sleep(0.1)


def promise(sentence: str, holds: object) -> None:
    """Prints a promise that holds.

    Raises:
        PromiseBroken: it does not hold.
    """
    if not holds:
        raise PromiseBroken(sentence)
    tell(f"  holds: {sentence}")


def tell(line: str) -> None:
    """Prints a line of the story."""
    typer.echo(line)
