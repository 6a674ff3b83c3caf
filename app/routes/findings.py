"""Routes for the findings of a run, which spare an agent a second look at the same file or question."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import Query
from pydantic import BaseModel, Field

from app.edge.dependencies import Caller, Parts
from app.edge.intake.reading import MadeFrom
from app.edge.routers import api_router
from app.routes.runs import RunId
from app.runtime import Runtime
from app.schemas.loop import RedactionOut
from app.schemas.responses import response_of
from retrieval.errors import NotFound
from retrieval.findings.statements import findings_of, run_named
from retrieval.findings.summary import SummaryFinding, summary
from retrieval.tables.kinds import FindingKind, FindingStatus
from writer.author import Author
from writer.findings.aspects import SHELL_FOLDER
from writer.findings.known import KnownIn, is_known
from writer.findings.record import clear_findings
from writer.retain.by_hand import FindingsWritten, PreparedFindings, prepare_findings, write_findings


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


router = api_router("findings", "/v1/runs")


@router.post("/{run_id}/findings", status_code=201)
async def add_findings(
    run_id: RunId,
    new: Annotated[PreparedFindings, MadeFrom(FindingsWritten, prepare_findings)],
    parts: Parts,
    caller: Caller,
) -> WrittenOut:
    """Adds findings that the backend words itself; the first call for an id starts the run.

    `known` and the summary use them like the findings of steps, but of a repeated finding only the newest.
    """
    await parts.admission.of_agent(caller, "writes", new.agent_key)
    redactions = await write_findings(parts.database, parts.keyring, run_id, new, caller)
    return response_of(WrittenOut, None, run_id=run_id, findings=len(new.findings), redactions=redactions)


@router.post("/{run_id}/known")
async def known(run_id: RunId, call: KnownIn, parts: Parts, caller: Caller) -> KnownOut:
    """Returns the finding of an earlier step that makes this tool call unnecessary, if there is one.

    A finding no longer counts once a later step changed its file, or may have changed it. With an equal `hash` it
    always counts, and with another hash never. Before the first step, the agent's earlier runs are searched.
    """
    if call.agent is not None:
        await parts.admission.of_agent(caller, "reads", call.agent)
    answer = await is_known(parts.database, parts.keyring, caller, run_id, call)
    finding = None if answer.finding is None else FindingOut.model_validate(answer.finding)
    return response_of(KnownOut, answer, finding=finding, content_cut=answer.cut)


@router.get("/{run_id}/summary")
async def get_summary(
    run_id: RunId,
    parts: Parts,
    caller: Caller,
    token_budget: Annotated[int, Query(ge=0, le=100_000, description="maximum tokens of the text")] = 1_000,
) -> SummaryOut:
    """Returns the findings of the run that may still hold, as text for the system prompt."""
    made = summary(await findings_in(run_id, parts, caller), token_budget)
    return response_of(SummaryOut, made, run_id=run_id, findings=made.shown)


async def findings_in(run_id: UUID, parts: Runtime, author: Author) -> list[SummaryFinding]:
    """Returns the newest findings of a run, the newest first.

    Raises:
        NotFound: the user has no such run.
    """
    async with parts.database.as_user(author.user_sub, author.authorised_at) as connection:
        agent_key = await connection.scalar(run_named(author.user_sub, run_id))
        words = await parts.keyring.find_for_page(connection, author.user_sub)
        if agent_key is None or words is None:
            raise NotFound("no such run")
        folder = words.number_of("place", SHELL_FOLDER)
        found = (await connection.execute(findings_of(author.user_sub, run_id, folder))).all()
    return [
        SummaryFinding(
            row.step,
            row.kind,
            row.success,
            row.query_hash,
            words.open("finding", row.payload, run_id, row.step, row.part),
            row.changed,
            row.in_doubt,
        )
        for row in found
    ]


@router.delete("/{run_id}/summary", status_code=204)
async def clear_summary(run_id: RunId, parts: Parts, caller: Caller) -> None:
    """Deletes the findings of the run, but not its steps."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        agent_key = await connection.scalar(run_named(caller.user_sub, run_id))
        if agent_key is None:
            raise NotFound("no such run")
        await clear_findings(connection, caller, run_id, agent_key)
