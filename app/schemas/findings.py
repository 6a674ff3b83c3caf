"""Bodies of the findings of a run: a lookup before a call, what is known, and the summary for the prompt."""

import json
from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, BaseModel, Field

from app.schemas.fields import RedactedJson
from app.schemas.loop import RedactionOut
from retrieval.tables.kinds import FindingKind, FindingStatus
from writer.run import AgentKey, AsArguments, Strict, ToolName

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


LONGEST_QUERY = 50_000


def _short_enough(query: object) -> object:
    if len(json.dumps(query)) > LONGEST_QUERY:
        raise ValueError(f"must have at most {LONGEST_QUERY:,} characters as JSON")
    return query


class KnownIn(Strict):
    """A call that the agent is about to make."""

    tool: ToolName
    query: Annotated[RedactedJson, AsArguments, AfterValidator(_short_enough)] = Field(
        description="path, pattern, question or command line of the call; or, more exact, the whole input of the tool"
    )
    hash: Sha256 | None = Field(
        default=None,
        description="sha256 (hex) of the UTF-8 text of the file, or of the requested lines, as they are now. An "
        "earlier reading counts only if its hash is the same, and then even if a later step may have changed the file",
    )
    across_runs: bool = Field(
        default=False,
        description="true: also look in earlier runs of the agent: for a file by its `hash`, for an answer by its "
        "question; results of a search may be out of date. Before the first step of the run they are always looked in",
    )
    agent: AgentKey | None = Field(
        default=None,
        description="agent of the run, for a question before its first step; null: the user's only agent",
    )
    content_chars: int = Field(
        default=20_000, ge=0, le=1_000_000, description="maximum length of `content` in characters; 0: no content"
    )


class FindingOut(BaseModel):
    """One finding: the answer that a step of a run got, such as the content of a file or the hits of a search."""

    run_id: UUID
    step: int
    case_id: UUID | None = Field(description="case of the run, whose tool traces hold the content; null: no case yet")
    kind: FindingKind
    success: bool
    tool: str
    query: str
    fact: str
    path: str | None = None
    lines: list[int | None] | None = Field(
        default=None, description="first and last line; null as last: to the end of the file"
    )
    line_count: int | None = None
    hash: str | None = Field(
        default=None, description="sha256 (hex) of the text that was read, without the tool's line numbers"
    )
    names: list[str] = Field(default=[], description="names that the file exports")
    interfaces: list[str] = []
    classes: list[str] = []
    count: int | None = Field(default=None, description="number of search results")
    samples: list[str] = Field(default=[], description="some paths of the search results")
    redacted: bool = Field(default=False, description="true: secrets were removed from the stored answer")
    by_hand: bool = Field(default=False, description="true: written by the backend; `fact` is all that is stored")
    created_at: datetime


class KnownOut(BaseModel):
    """The answer to a lookup: the finding of an earlier equal call, if there is one."""

    known: bool
    why: FindingStatus
    similarity: float = Field(description="similarity of the two queries, 0 to 1")
    age_steps: int | None = Field(
        description="number of steps since the finding; null: not found, or found in an earlier run"
    )
    finding: FindingOut | None
    content: str | None = Field(
        description="answer of the earlier call; null: not known, not requested, or stored in the case of its run"
    )
    content_cut: bool


class WrittenOut(BaseModel):
    """The acknowledgement: the findings are on disk."""

    run_id: UUID
    findings: int = Field(description="number of findings that were added")
    redactions: list[RedactionOut]


class SummaryOut(BaseModel):
    """The findings of a run, as text for the system prompt."""

    run_id: UUID
    text: str = Field(description="text for the prompt; empty: no finding still holds, or none fits the budget")
    tokens: int
    findings: int = Field(description="number of findings in the text")
    left_out: dict[str, int] = Field(
        description="number of files, searches and other findings that did not fit the budget"
    )
