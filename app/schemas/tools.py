"""Responses with statistics of tools."""

from datetime import datetime

from pydantic import BaseModel, Field


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
