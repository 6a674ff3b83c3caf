"""Runs to retain, what is read of the answers, and a service that explores."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.service import Service, User

STEPS = ["open the valve", "wait", "close the valve"]
TASKS = [
    "restart the web server after a configuration change",
    "rotate the password of the database server and tell the team",
    "export the log of the mail server as a spreadsheet",
    "find out why the nightly backup of the server failed",
    "upgrade the server to the newest release",
    "book a meeting about the slow server",
]
"""Each says something else, and each has to do with a server."""
LESSON = {
    "procedure_name": "name the type",
    "semantic_description": "a column needs a data type",
    "initial_failure_summary": "syntax error",
    "identified_root_cause": "the type was missing",
    "successful_intervention": "added the type",
    "learned_procedure_steps": ["find the type", "write it behind the name"],
    "critical_contextual_cues": ["ADD COLUMN"],
    "example_scenario_abstract": "adding a column to a table",
}


async def fill(user: User, tasks: list[str] | None = None, **more: Any) -> list[str]:
    """Retains a case for each task and returns their ids once all are ready."""
    ids = [await user.retain(task, **more) for task in tasks or TASKS]
    await user.settle()
    assert len(await user.cases()) >= len(set(ids))
    return ids


def ids(answer: dict[str, Any]) -> list[str]:
    return [slot["case_id"] for slot in answer["cases"]]


async def reuse(user: User, case_id: str) -> tuple[float, float]:
    case = await user.case(case_id)
    return case["reuse_count"], case["reuse_reward"]


@pytest.fixture
def lots(service: Service) -> Iterator[None]:
    """Lets the service try things out, as it does outside of tests."""
    runtime = service.app.state.runtime
    service.app.state.runtime = replace(runtime, reader=replace(runtime.reader, explore=True))
    yield
    service.app.state.runtime = runtime


async def replayed(user: User) -> None:
    """Waits until the worker has replayed all cases."""
    cases = len(await user.cases())

    async def done() -> bool:
        return [row.runs for row in await user.rows("SELECT runs FROM replays WHERE user_sub = :user_sub")] == [cases]

    await user.service.until(done)
