"""Routes for tool memory: calls of each tool, their failures and the fixes that worked."""

from collections import Counter, defaultdict
from datetime import datetime
from typing import Annotated

from fastapi import Path
from pydantic import BaseModel, Field
from sqlalchemy import RowMapping

from app.edge.dependencies import Agent, Caller, Limit, Parts
from app.edge.routers import api_router
from policy.rate import wilson
from retrieval.errors import NotFound
from retrieval.sections import tools
from writer.analysis.remedy import tool_name
from writer.privacy.redact import without_secrets


class ToolOut(BaseModel):
    """Statistics of a tool over all runs of an agent."""

    tool: str
    calls: int
    errors: int = Field(description="failed calls, by their status or their output")
    error_rate: float
    error_rate_interval: tuple[float, float] = Field(description="95 % Wilson interval; assumes independent calls")
    cases: int = Field(description="number of runs that called the tool")
    mean_duration_ms: float | None = Field(description="mean over the runs that reported the duration of every call")
    last_used_at: datetime


class ToolsOut(BaseModel):
    """The tools of an agent, by falling number of calls."""

    tools: list[ToolOut]


class FormOut(BaseModel):
    """Arguments that worked, with placeholders for values, and the number of runs."""

    form: str
    runs: int


class FixOut(BaseModel):
    """A fix of a failure, and how often it worked."""

    fix: str
    count: int


class ToolFailureOut(BaseModel):
    """One cause of failures: its count, the fixes that worked, and the number of failures left unresolved.

    An empty answer counts as a failure if the same question in another spelling then returned something.
    """

    cause: str
    count: int
    fixes: list[FixOut]
    unresolved: int


class ToolMemoryOut(ToolOut):
    """Statistics of a tool with its failures; without any argument value or word of an answer."""

    arguments: list[FormOut] = Field(description="arguments that worked, the most frequent first")
    failures: list[ToolFailureOut] = Field(description="causes of failure, the most frequent first")


router = api_router("tools", "/v1/tools")

Name = Annotated[
    str, Path(min_length=1, max_length=200, description="name of the tool as in tool traces; it may contain slashes")
]


@router.get("")
async def list_tools(agent: Agent, parts: Parts, caller: Caller, limit: Limit = 50) -> ToolsOut:
    """Returns the most called tools of the agent, with their error rates."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        rows = (await connection.execute(tools.tools_of(caller.user_sub, agent, limit))).mappings().all()
    return ToolsOut(tools=[ToolOut.model_validate(_counted(row)) for row in rows])


@router.get("/{name:path}/memory")
async def get_tool_memory(name: Name, agent: Agent, parts: Parts, caller: Caller) -> ToolMemoryOut:
    """Returns the tool's calls, error rate, typical arguments, common failures and their fixes."""
    tool = tool_name(without_secrets(name))  # as the worker wrote it
    which = caller.user_sub, agent
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        row = (await connection.execute(tools.one_tool(*which, tool))).mappings().one_or_none()
        forms = (await connection.execute(tools.forms_of(*which, [tool]))).mappings().all()
        fixes = (await connection.execute(tools.failures_of(*which, [tool]))).all()
    if row is None:
        raise NotFound("no such tool")
    by_cause: defaultdict[str, Counter[str | None]] = defaultdict(Counter)
    for _, cause, fix, count in fixes:  # fix is None: unresolved
        by_cause[cause][fix] += count
    failures = [
        ToolFailureOut(
            cause=cause,
            count=counts.total(),
            fixes=[FixOut(fix=fix, count=count) for fix, count in counts.items() if fix is not None],
            unresolved=counts[None],
        )
        for cause, counts in sorted(by_cause.items(), key=lambda each: (-each[1].total(), each[0]))
    ]
    return ToolMemoryOut.model_validate({**_counted(row), "arguments": list(map(dict, forms)), "failures": failures})


def _counted(row: RowMapping) -> dict[str, object]:
    errors, calls = int(row["errors"]), int(row["calls"])
    return {**row, "error_rate": errors / calls, "error_rate_interval": wilson(errors, calls)}
