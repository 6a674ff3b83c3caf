"""Tool memory: what each tool did in the runs of an agent, how it fails, and what put that right."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated

from fastapi import APIRouter, Path, Query
from sqlalchemy import RowMapping

from app.edge.dependencies import Caller, Parts
from app.edge.intake.route import BodyRoute
from app.edge.problems import DOCUMENTED, raises
from app.schemas.tools import FixOut, FormOut, ToolFailureOut, ToolMemoryOut, ToolOut, ToolsOut
from policy.rate import wilson
from retrieval.errors import NotFound
from retrieval.sections import tools
from writer.analysis.remedy import tool_name
from writer.privacy.redact import redact_text
from writer.run import AgentKey

router = APIRouter(prefix="/v1/tools", tags=["tools"], responses=DOCUMENTED, route_class=BodyRoute)

Agent = Annotated[AgentKey, Query()]
Limit = Annotated[int, Query(ge=1, le=200)]
Name = Annotated[str, Path(min_length=1, max_length=200, description="as in the tool traces; it may have slashes")]


@router.get("")
async def list_tools(agent: Agent, parts: Parts, caller: Caller, limit: Limit = 50) -> ToolsOut:
    """Returns the tools that the agent called most, with how often they failed."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        rows = (await connection.execute(tools.tools_of(caller.user_sub, agent, limit))).mappings().all()
    return ToolsOut(tools=[ToolOut.model_validate(_counted(row)) for row in rows])


@router.get("/{name:path}/memory", responses=raises(NotFound))
async def get_tool_memory(name: Name, agent: Agent, parts: Parts, caller: Caller) -> ToolMemoryOut:
    """Returns the tool's calls, error rate, typical arguments, common failures and the fixes that followed."""
    tool = tool_name(redact_text(name)[0])  # as the worker wrote it
    which = caller.user_sub, agent, tool
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        row = (await connection.execute(tools.one_tool(*which))).mappings().one_or_none()
        forms = (await connection.execute(tools.forms_of(*which))).all()
        failures = [_Met(*each) for each in await connection.execute(tools.failures_of(*which))]
    if row is None:
        raise NotFound("no such tool")
    arguments = [FormOut(form=found.form, runs=found.runs) for found in forms]
    memory = {**_counted(row), "arguments": arguments, "failures": _by_cause(failures)}
    return ToolMemoryOut.model_validate(memory)


@dataclass(frozen=True, slots=True)
class _Met:
    """How often a cause and its fix came together; a fix of None is none."""

    cause: str
    fix: str | None
    times: int


def _counted(row: RowMapping) -> dict[str, object]:
    errors, calls = int(row["errors"]), int(row["calls"])
    return {**row, "error_rate": errors / calls, "error_rate_interval": wilson(errors, calls)}


def _by_cause(rows: Sequence[_Met]) -> list[ToolFailureOut]:
    """Returns the causes, the most frequent first, each with its fixes in the order of the rows."""
    causes = groupby(sorted(rows, key=lambda row: row.cause), key=lambda row: row.cause)
    return sorted((_failure(cause, list(group)) for cause, group in causes), key=lambda each: -each.count)


def _failure(cause: str, rows: Sequence[_Met]) -> ToolFailureOut:
    return ToolFailureOut(
        cause=cause,
        count=sum(row.times for row in rows),
        fixes=[FixOut(fix=row.fix, count=row.times) for row in rows if row.fix is not None],
        unresolved=sum(row.times for row in rows if row.fix is None),
    )
