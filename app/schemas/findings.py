"""Answers about the findings of a run: what is known before a call, and the summary for the prompt."""

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, Field

from app.schemas.loop import RedactionOut
from retrieval.tables.kinds import FindingKind, FindingStatus


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
