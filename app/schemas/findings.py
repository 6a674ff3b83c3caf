"""The bodies about the findings of a run: what is known of a call, and the block for the prompt."""

import json
from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from app.schemas.fields import RedactedJson
from retrieval.tables.kinds import FindingKind, Knowledge
from writer.run import Strict, ToolName

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


LONGEST_QUERY = 50_000


def _short_enough(query: object) -> object:
    if len(json.dumps(query)) > LONGEST_QUERY:
        raise ValueError(f"must have at most {LONGEST_QUERY:,} characters as JSON")
    return query


class KnownIn(Strict):
    """A call that the agent is about to make."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"tool": "read_file", "query": "app/main.py"}]},
    )

    tool: ToolName
    query: Annotated[RedactedJson, AfterValidator(_short_enough)] = Field(
        description="the path, pattern, question or command line; or all of the tool's input, which tells more"
    )
    hash: Sha256 | None = Field(
        default=None,
        description="of the file as it is now, or of just the lines that are asked for: sha256 in hex of that text in "
        "UTF-8. What was read counts as known only if it is the same, and then even where a step since may have "
        "changed it",
    )
    across_runs: bool = Field(
        default=False,
        description="whether earlier runs of the agent are asked as well: a file is known by its `hash`, an answer by "
        "its question; of a search they say what it found then, and nobody knows whether it still holds",
    )
    content_chars: int = Field(default=20_000, ge=0, le=1_000_000, description="of the content, at most; 0: none")


class FindingOut(BaseModel):
    """What a step found out."""

    run_id: UUID
    step: int
    case_id: UUID | None = Field(description="the case that its run became, whose tool traces have the content")
    kind: FindingKind
    success: bool
    tool: str
    query: str
    fact: str
    path: str | None = None
    lines: list[int | None] | None = Field(default=None, description="first and last; null as last: to the end")
    line_count: int | None = None
    hash: str | None = Field(default=None, description="sha256 in hex of what was read, without a tool's line numbers")
    names: list[str] = Field(default=[], description="that the file exports")
    interfaces: list[str] = []
    classes: list[str] = []
    count: int | None = Field(default=None, description="of what a search found")
    samples: list[str] = Field(default=[], description="paths among it")
    redacted: bool = Field(default=False, description="whether what is kept of the answer is without its secrets")
    created_at: datetime


class KnownOut(BaseModel):
    """Whether the call need not be made, and what was found by the one before."""

    known: bool
    why: Knowledge
    similarity: float = Field(description="of the queries, 0 to 1")
    age_steps: int | None = Field(description="how many steps of this run ago; null: never, or in an earlier run")
    finding: FindingOut | None
    content: str | None = Field(
        description="what the call answered; null: it is not known, or was not asked for, or is in the case of its run"
    )
    content_cut: bool


class SummaryOut(BaseModel):
    """What the run found out, for the system prompt."""

    run_id: UUID
    text: str = Field(description="empty: nothing was found out that still holds, or nothing fits")
    tokens: int
    findings: int = Field(description="how many are in the text")
    left_out: dict[str, int] = Field(description="files, searches and others that found no room")
