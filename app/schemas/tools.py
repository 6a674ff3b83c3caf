"""The bodies that tell what tools did."""

from datetime import datetime

from pydantic import BaseModel, Field


class ToolOut(BaseModel):
    """What a tool did in all runs of an agent."""

    tool: str
    calls: int
    errors: int = Field(description="calls that failed, by their status or by what they answered")
    error_rate: float
    error_rate_interval: tuple[float, float] = Field(description="95 %, Wilson's; calls are taken for independent")
    cases: int = Field(description="runs that called it")
    mean_duration_ms: float | None = Field(description="over the runs that told how long every call took")
    last_used_at: datetime


class ToolsOut(BaseModel):
    """The tools of an agent, the one with most calls first."""

    tools: list[ToolOut]


class FormOut(BaseModel):
    """Arguments that worked, with placeholders for values, and in how many runs."""

    form: str
    runs: int


class FixOut(BaseModel):
    """What put a failure right, and how often."""

    fix: str
    count: int


class ToolFailureOut(BaseModel):
    """One cause of failures: how often it came, what put it right, and how often nothing did.

    An empty answer counts where the same question in another spelling then found something.
    """

    cause: str
    count: int
    fixes: list[FixOut]
    unresolved: int


class ToolMemoryOut(ToolOut):
    """All that is known of a tool; nothing of it holds a value of an argument or a word of an answer."""

    arguments: list[FormOut] = Field(description="that worked, the most frequent first")
    failures: list[ToolFailureOut] = Field(description="the most frequent first")
