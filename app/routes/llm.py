"""Routes for language models: rewrite a query, and read the tokens used by a profile."""

from datetime import date
from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, Field

from app.edge.dependencies import AgentPath, Caller, Parts
from app.edge.routers import api_router
from app.schemas.loop import RewriteIn
from retrieval.rewriting.choice import Asker
from retrieval.tables.kinds import LlmPurpose, Rewrite
from writer.privacy.names import nameable
from writer.procedures.llm import token_budget


class RewriteOut(BaseModel):
    """The rewritten query, and the rewriter that produced it."""

    query: str
    rewritten_by: Rewrite = Field(
        description="rewriter that was used; off: the query is unchanged but for removed secrets"
    )
    degraded: list[str] = Field(description="`rewriter`: the rewriter failed and the query was left as it is")


class UsageOut(BaseModel):
    """Calls and tokens of a language model on one day for one purpose."""

    day: date
    purpose: LlmPurpose
    calls: int
    failures: int = Field(description="calls without a usable answer")
    prompt_tokens: int
    completion_tokens: int


class UsagesOut(BaseModel):
    """The profile's use of language models by day and purpose, the newest day first."""

    tokens_left_today: int = Field(
        description="tokens left until midnight UTC; negative: the last calls exceeded the budget"
    )
    usage: list[UsageOut]


router = api_router("language model", "/v1")


@router.post("/rewrite")
async def rewrite(body: RewriteIn, parts: Parts, caller: Caller) -> RewriteOut:
    """Removes a query's secrets, then rewrites it if a rewriter is set; does not search."""
    await parts.admission.of_agent(caller, "reads", body.agent)
    asker = Asker(caller.user_sub, caller.authorised_at, nameable(body.agent))
    rewritten = await parts.rewriting.rewrite(asker, body.query, body.rewrite)
    degraded = ["rewriter"] if rewritten.degraded else []
    return RewriteOut(query=rewritten.query, rewritten_by=rewritten.by, degraded=degraded)


@router.get("/profiles/{agent:path}/usage")
async def get_usage(
    agent: AgentPath, parts: Parts, caller: Caller, days: Annotated[int, Query(ge=1, le=366)] = 30
) -> UsagesOut:
    """Returns the calls and tokens of language models for a profile, by day and purpose."""
    left = token_budget.left(caller.user_sub, agent, parts.settings.llm_tokens_per_day)
    by_day = token_budget.by_day(caller.user_sub, agent, days)
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        tokens_left = int((await connection.execute(left)).scalar_one())
        rows = (await connection.execute(by_day)).mappings().all()
    return UsagesOut(tokens_left_today=tokens_left, usage=[UsageOut.model_validate(row) for row in rows])
