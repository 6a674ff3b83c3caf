"""Stores findings: their texts are encrypted, and keyed hashes beside the texts serve to look findings up."""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import delete, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.tables.runs import findings, runs
from writer.audit import note
from writer.author import Author
from writer.findings.aspects import MOST_LINES, Aspect
from writer.findings.extract import Finding
from writer.privacy.words import Words
from writer.run import AgentKey


async def add_findings(
    connection: AsyncConnection,
    words: Words,
    agent_key: AgentKey,
    run_id: UUID,
    by_step: Iterable[tuple[int, int, Sequence[Finding]]],
) -> None:
    """Adds findings to a run.

    ``by_step`` has for each step its number, the number of its first new finding, and the findings.
    """
    rows = [
        {
            "user_sub": words.user_sub,
            "run_id": run_id,
            "agent_key": agent_key,
            "step": step,
            "part": part,
            "kind": each.aspect.kind,
            "success": each.success,
            **hashes_of(words, each.aspect, each.content_hash),
            "place_keys": _numbers(words, "place", each.aspect.place.keys),
            "place_marks": _numbers(words, "place", each.aspect.place.marks),
            "first_line": each.aspect.lines[0] if each.aspect.lines else None,
            "last_line": min(each.last_line, MOST_LINES) if each.aspect.kind == "read" else None,
            "payload": words.seal("finding", each.payload, run_id, step, part),
        }
        for step, first_part, some in by_step
        for part, each in enumerate(some, first_part)
    ]
    if rows:
        await connection.execute(insert(findings), rows)


def hashes_of(words: Words, aspect: Aspect, content_hash: str) -> dict[str, Any]:
    """Returns the columns with the keyed hashes by which a finding of this aspect is looked up."""
    return {
        "query_hash": words.number_of("query", aspect.query_key.key),
        "terms": _numbers(words, "term", aspect.query_key.terms),
        "path_hash": words.number_of("path", aspect.path) if aspect.kind == "read" else None,
        "content_hash": words.number_of("content", content_hash) if content_hash else None,
    }


def _numbers(words: Words, purpose: str, texts: Iterable[str]) -> list[int]:
    return sorted(words.number_of(purpose, text) for text in texts)


async def clear_findings(connection: AsyncConnection, author: Author, run_id: UUID, agent_key: str) -> None:
    """Deletes all findings of a run, but not its steps, and notes the deletion in the audit."""
    mine = findings.c.user_sub == author.user_sub, findings.c.run_id == run_id
    count = (await connection.execute(delete(findings).where(*mine))).rowcount
    await note(connection, author.change(agent_key, "clear_findings", run_id, findings=count))


async def forget_findings_of_cases(connection: AsyncConnection, user_sub: str, case_ids: Sequence[UUID]) -> None:
    """Deletes the findings of the runs that became these cases; called before the cases are deleted."""
    source = select(runs.c.id).where(runs.c.user_sub == user_sub, runs.c.case_id.in_(case_ids))
    await connection.execute(delete(findings).where(findings.c.user_sub == user_sub, findings.c.run_id.in_(source)))
