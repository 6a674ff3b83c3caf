"""Bodies of advice at a failed call."""

from typing import Literal
from uuid import UUID

from pydantic import AliasPath, BaseModel, Field

from app.schemas.fields import CleanToolName, RedactedJson, SearchText
from app.schemas.responses import RowOut
from policy.advice import RIGHT
from retrieval.advice.text import TOKENS
from writer.advice.answer import FailedCall, Silence
from writer.analysis.calls import calls_in
from writer.run import AgentKey, SessionName, Strict

MOST_TRIED = 50
"""Maximum number of calls since a failure that a request for advice can name as tried."""


class TriedCall(Strict):
    """A call that the run made since the failure."""

    tool: CleanToolName
    input: RedactedJson = None


class AdviceIn(Strict):
    """A call that has just failed."""

    agent: AgentKey
    tool: CleanToolName
    input: RedactedJson = None
    output: RedactedJson = None
    status: Literal["ok", "error"] = Field(
        default="error", description="error: the call failed, whatever its output says; ok: its output is judged"
    )
    task: SearchText | None = Field(default=None, description="task of the run; helps to choose the right fix")
    run_id: UUID | None = Field(default=None, description="run whose steps are sent one by one")
    retrieval_id: UUID | None = Field(default=None, description="retrieval that the run began with")
    session_id: SessionName | None = Field(
        default=None, description="session of the agent; an unknown session is not an error"
    )
    tried: list[TriedCall] = Field(
        default_factory=list, max_length=MOST_TRIED, description="calls since the failure; fixes like them are left out"
    )
    precision: float = Field(
        default=RIGHT,
        ge=0,
        le=1,
        description="share of returned fixes that should be right, by the bank's own failures; lower: more fixes",
    )
    token_budget: int = Field(default=TOKENS, ge=0, le=2_000, description="maximum tokens of `text`")
    plans: int = Field(
        default=0, ge=0, le=4, description="maximum number of plans, from runs of similar tasks that went well"
    )


def failed_call(given: AdviceIn) -> FailedCall:
    """Returns the failed call of a request, with the calls since."""
    call, *tried = calls_in([vars(given), *map(vars, given.tried)])
    return FailedCall(
        given.agent,
        call,
        given.task or "",
        given.run_id,
        given.retrieval_id,
        given.session_id,
        tried,
        given.precision,
        given.token_budget,
        given.plans,
    )


class AdvisedFixOut(RowOut):
    """A fix: the calls and changes that put such a failure right in an earlier run."""

    what: str = Field(description="the call that worked, and its difference to the failed call")
    plan: list[str] = Field(description="first steps of the plan that the backend gave for that run")
    case_id: UUID = Field(description="earlier run with the most similar failure")
    confidence: float = Field(description="share of the votes of earlier failures, 0 to 1")
    worked: int = Field(description="number of earlier runs that failed like this and that this fix put right")
    runs: int = Field(description="number of earlier runs that failed like this")
    told: int = Field(description="number of times that advice on such a failure had this fix")
    helped: int = Field(description="number of these times after which the failure did not come back")
    dangerous: bool = Field(
        validation_alias=AliasPath("fix", "dangerous"), description="true: the fix deletes something or skips a check"
    )
    why: str


class AdvisedPlanOut(BaseModel):
    """A plan of a run that went well, on a task and with errors like those of the failed run."""

    plan: list[str] = Field(description="first steps of the plan")
    case_id: UUID = Field(description="case of the run with this plan")
    likeness: float = Field(description="similarity of the run's task and errors to those of the failed run, 0 to 1")
    proven: bool = Field(description="true: a source other than the run confirmed that it went well")
    dangerous: bool = Field(description="true: a step deletes something or skips a check")


class AdviceOut(BaseModel):
    """Advice for a failed call; without a fix, the reason why."""

    advice_id: UUID | None = Field(
        description="decision that logs this advice; null: `why_empty` is off or not_failed, or the agent is new"
    )
    text: str = Field(description="text for the message of the failed tool; empty: no advice")
    fixes: list[AdvisedFixOut] = Field(description="best first")
    plans: list[AdvisedPlanOut] = Field(description="the most similar first; empty unless the request asks for them")
    why_empty: Silence | None = Field(description="reason why there are no fixes; null: there are some")
    stopped: int = Field(description="earlier runs that this failure stopped, if it stopped all; else 0")
    degraded: list[str] = Field(
        description="`unreadable`: earlier failures or plans were left out because they do not decrypt"
    )
