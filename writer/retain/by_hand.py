"""Stores findings that a backend writes itself, beside the findings that are extracted from steps."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any
from uuid import UUID

from pydantic import AfterValidator, Field
from sqlalchemy import func, select

from retrieval.database.database import Database
from retrieval.tables.runs import findings, run_steps
from writer.audit import note
from writer.author import Author
from writer.findings.aspects import by_hand, reading
from writer.findings.calls import LISTS_FOLDERS, aspects_of
from writer.findings.extract import Finding
from writer.findings.paths import tidy
from writer.findings.record import add_findings
from writer.privacy.keys import Keyring
from writer.privacy.names import nameable
from writer.privacy.redact import Redaction, redact
from writer.privacy.seal import PayloadTooLarge
from writer.retain.steps import MOST_STEPS, open_run
from writer.run import AgentKey, Strict, TaskText, ToolName
from writer.storable import line, storable

FIRST_PART = 1_000
"""Number of a step's first finding that was written by hand; lower numbers are for findings extracted from the step."""
MOST_OF_STEP = 10_000
"""Maximum number of a step's findings that were written by hand; their numbers fit a smallint."""


class WrittenFinding(Strict):
    """One finding, in the words of the backend."""

    tool: ToolName
    query: line(4_000) = Field(description="path, pattern or question of the call, as `known` asks for it later")  # type: ignore[valid-type]
    fact: line(2_000) = Field(description="the finding in words")  # type: ignore[valid-type]
    step: int | None = Field(default=None, ge=1, le=MOST_STEPS, description="null: the last step of the run, or 1")
    success: bool = True
    path: Annotated[str, Field(min_length=1), AfterValidator(storable)] | None = Field(
        default=None, description="file that the finding is about; null: `query`, if the tool reads files"
    )


class FindingsWritten(Strict):
    """New findings of a run. The first call for an id begins the run."""

    agent: AgentKey
    task: TaskText = Field(description="task of the whole run; only that of the call that begins the run counts")
    findings: list[WrittenFinding] = Field(min_length=1, max_length=200)


@dataclass(frozen=True, slots=True)
class PreparedFindings:
    """Findings written by hand, redacted, ready to be stored."""

    agent_key: str
    task: str
    findings: Sequence[dict[str, Any]]
    redactions: list[Redaction]


def prepare_findings(written: FindingsWritten) -> PreparedFindings:
    """Returns the findings redacted, ready for ``write_findings``."""
    clean, redactions = redact(written.model_dump(mode="json"))
    return PreparedFindings(written.agent, clean["task"], clean["findings"], redactions)


async def write_findings(
    database: Database, keyring: Keyring, run_id: UUID, new: PreparedFindings, author: Author
) -> list[Redaction]:
    """Adds findings to a run, and returns the redactions made in them; the first findings or steps begin the run.

    Raises:
        MemoryOff: the user switched off writing for this agent.
        RunEnded: the run was retained.
        UnknownReference: the run is another agent's.
        SecretInName: the agent's name looks like a secret.
        PathTooLong: a path is longer than any path of Linux.
        PayloadTooLarge: a step would have more than MOST_OF_STEP findings.
    """
    nameable(new.agent_key)
    async with database.as_user(author.user_sub, author.authorised_at) as connection:
        words, run, _ = await open_run(connection, keyring, run_id, (new.agent_key, new.task, None), author)
        mine = findings.c.user_sub == author.user_sub, findings.c.run_id == run_id
        steps = run_steps.c.user_sub == author.user_sub, run_steps.c.run_id == run_id
        last = select(func.greatest(select(func.max(run_steps.c.number)).where(*steps).scalar_subquery(), 1))
        last_step = int(await connection.scalar(last) or 1)
        earlier = select(findings.c.step, func.max(findings.c.part).label("part")).where(
            *mine, findings.c.part >= FIRST_PART
        )
        largest = await connection.execute(earlier.group_by(findings.c.step))
        parts = {row.step: row.part for row in largest}
        by_step = []
        for each in new.findings:
            step = each["step"] or last_step
            parts[step] = parts.get(step, FIRST_PART - 1) + 1
            if parts[step] >= FIRST_PART + MOST_OF_STEP:
                raise PayloadTooLarge(f"step {step} would have more than {MOST_OF_STEP:,} findings: name a later step")
            by_step.append((step, parts[step], [_finding(each, run.tool_kinds)]))
        await add_findings(connection, words, run.agent_key, run_id, by_step)
        await note(connection, author.change(new.agent_key, "write_findings", run_id, findings=len(new.findings)))
    return new.redactions


def _finding(written: dict[str, Any], kinds: dict[str, str]) -> Finding:
    tool, query = written["tool"], written["query"]
    aspects = aspects_of(tool, query, kinds)
    aspect = by_hand(next((each for each in aspects if each.shows), aspects[0]))
    if written["path"] is not None and aspect.kind == "read":
        aspect = reading(tidy(written["path"]))
    elif written["path"] is not None:
        aspect = replace(aspect, path=tidy(written["path"]))
    listing = aspect.kind == "search" and LISTS_FOLDERS.search(tool.casefold()) is not None
    details = {"by_hand": True, "listing": listing}
    return Finding(tool, replace(aspect, query=query), written["fact"], written["success"], details=details)
