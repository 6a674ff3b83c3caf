"""Bodies of the routes for language models: a query and its rewriting, and the tokens used."""

from datetime import date

from pydantic import BaseModel, ConfigDict, Field

from app.schemas.fields import SearchText
from retrieval.tables.kinds import LlmPurpose, Rewrite
from writer.examples import examples_of
from writer.run import AgentKey, Strict


class RewriteIn(Strict):
    """A user's message that is to be rewritten as a search query."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=examples_of("RewriteIn"))

    agent: AgentKey
    query: SearchText
    rewrite: Rewrite | None = Field(default=None, description="rewriter; null: the one set in the profile")


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
