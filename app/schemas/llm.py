"""The bodies about language models: rewriting, and what was asked of them."""

from datetime import date

from pydantic import BaseModel, ConfigDict, Field

from app.schemas.fields import SearchText
from retrieval.tables.kinds import LlmPurpose, Rewrite
from writer.run import AgentKey, Strict


class RewriteIn(Strict):
    """What a user said, to be turned into a search."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"agent": "db-operator", "query": "Hi, could you add an age column? Thanks!", "rewrite": "rules"}
            ]
        },
    )

    agent: AgentKey
    query: SearchText
    rewrite: Rewrite | None = Field(default=None, description="who rewrites it; null: as the profile has it")


class RewriteOut(BaseModel):
    """What to search for, and who wrote it."""

    query: str
    rewritten_by: Rewrite = Field(description="off: nobody; it is the query, without secrets")
    degraded: list[str] = Field(description="rewriter: it was to be rewritten, and nobody could")


class UsageOut(BaseModel):
    """What one day's calls of a language model came to, of one purpose."""

    day: date
    purpose: LlmPurpose
    calls: int
    failures: int = Field(description="calls without a usable answer")
    prompt_tokens: int
    completion_tokens: int


class UsagesOut(BaseModel):
    """What language models were asked at the profile's expense, today's first."""

    tokens_left_today: int = Field(description="until midnight UTC; negative when the last calls took more")
    usage: list[UsageOut]
