"""Findings of a run: what its steps found out, so that an agent need not look the same thing up twice."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query

from app.edge.dependencies import Caller, Parts
from app.edge.intake.route import BodyRoute
from app.edge.problems import DOCUMENTED
from app.routes.runs import RunId
from app.runtime import Runtime
from app.schemas.findings import FindingOut, KnownIn, KnownOut, SummaryOut
from retrieval.database.rows import AnyRow
from retrieval.errors import NotFound
from retrieval.findings.statements import findings_of, run_named
from retrieval.findings.summary import Finding, summary
from writer.author import Author
from writer.findings.aspects import SHELL_FOLDER
from writer.findings.known import CallAsked, FindingTold, is_known
from writer.findings.record import clear_findings
from writer.privacy.words import Words

router = APIRouter(prefix="/v1/runs", tags=["findings"], responses=DOCUMENTED, route_class=BodyRoute)


@router.post("/{run_id}/known")
async def known(run_id: RunId, asked: KnownIn, parts: Parts, caller: Caller) -> KnownOut:
    """Says whether a step of the run found out already what a call of this tool would.

    What a later step changed, or what now has another hash, is never known; nor is what a later step may have changed,
    unless the `hash` shows that it did not.
    """
    call = CallAsked(asked.tool, asked.query, asked.hash, asked.across_runs, asked.content_chars)
    answer = await is_known(parts.database, parts.keyring, caller, run_id, call)
    return KnownOut(
        known=answer.known,
        why=answer.why,
        similarity=answer.similarity,
        age_steps=answer.age_steps,
        finding=None if answer.finding is None else _shown(answer.finding),
        content=answer.content,
        content_cut=answer.cut,
    )


@router.get("/{run_id}/summary")
async def get_summary(
    run_id: RunId,
    parts: Parts,
    caller: Caller,
    token_budget: Annotated[int, Query(ge=0, le=100_000, description="of the text")] = 1_000,
) -> SummaryOut:
    """Returns what the run found out and still holds, as a block for the system prompt."""
    made = summary(await findings_in(run_id, parts, caller), token_budget)
    return SummaryOut(run_id=run_id, text=made.text, tokens=made.tokens, findings=made.shown, left_out=made.left_out)


async def findings_in(run_id: UUID, parts: Runtime, author: Author) -> list[Finding]:
    """Returns the newest findings of a run, the newest first.

    Raises:
        NotFound: the user has no such run.
    """
    words: Words | None = None
    found: Sequence[AnyRow] = ()
    async with parts.database.as_user(author.user_sub, author.authorised_at) as connection:
        agent_key = await connection.scalar(run_named(author.user_sub, run_id))
        key = await parts.keyring.find(connection, author.user_sub)
        if key is not None:
            words = Words(author.user_sub, key)
            folder = words.number_of("place", SHELL_FOLDER)
            found = (await connection.execute(findings_of(author.user_sub, run_id, folder))).all()
    if agent_key is None or words is None:
        raise NotFound("no such run")
    return [
        Finding(
            row.step,
            row.kind,
            row.success,
            row.query_hash,
            words.open_finding(run_id, row.step, row.part, row.payload),
            row.changed,
        )
        for row in found
    ]


@router.delete("/{run_id}/summary", status_code=204)
async def clear_summary(run_id: RunId, parts: Parts, caller: Caller) -> None:
    """Deletes the findings of the run; its steps stay."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        agent_key = await connection.scalar(run_named(caller.user_sub, run_id))
        if agent_key is None:
            raise NotFound("no such run")
        await clear_findings(connection, caller, run_id, agent_key)


def _shown(finding: FindingTold) -> FindingOut:
    said: Mapping[str, Any] = finding.said
    return FindingOut(
        run_id=finding.run_id,
        step=finding.step,
        case_id=finding.case_id,
        kind=finding.kind,
        success=finding.success,
        created_at=finding.created_at,
        **said,
    )
