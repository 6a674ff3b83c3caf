"""Stores a person's review of a version of a procedure; the newest review counts, and the audit notes each."""

from dataclasses import asdict, dataclass
from uuid import UUID

from prometheus_client import Counter
from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.errors import NotFound
from retrieval.tables.kinds import ReviewVerdict
from retrieval.tables.procedures import procedure_reviews, procedures
from writer.audit import Change, note
from writer.author import Author

REVIEWS = Counter("casebank_procedure_reviews_total", "Reviews of procedures by their verdict", ["verdict"])


@dataclass(frozen=True, slots=True)
class Review:
    """A person's verdict on a version of a procedure.

    Attributes:
        note: the reviewer's reasons, redacted.
        root_cause_right: true if the root cause is right; None if the reviewer did not answer.
        steps_complete: true if the steps are complete; None if the reviewer did not answer.
    """

    verdict: ReviewVerdict
    note: str = ""
    root_cause_right: bool | None = None
    steps_complete: bool | None = None


async def review(
    connection: AsyncConnection, author: Author, procedure_id: UUID, version: int | None, opinion: Review
) -> int:
    """Stores the review of a procedure's version in place of an earlier review, and returns the version's number.

    Without a number it is the active version.

    Raises:
        NotFound: the user has no such version.
    """
    mine = procedures.c.user_sub == author.user_sub, procedures.c.id == procedure_id
    which = procedures.c.status == "active" if version is None else procedures.c.version == version
    query = select(procedures.c.version, procedures.c.agent_key).where(*mine, which).with_for_update()
    row = (await connection.execute(query)).one_or_none()
    if row is None:
        raise NotFound("no version of this procedure is active" if version is None else "no such version")
    values = {**asdict(opinion), "actor": author.actor}
    key = {"user_sub": author.user_sub, "procedure_id": procedure_id, "version": row.version}
    stored = insert(procedure_reviews).values({**key, **values})
    newer = {name: stored.excluded[name] for name in (*values, "created_at")}
    newest = stored.on_conflict_do_update(index_elements=list(key), set_=newer)
    await connection.execute(newest)
    owner = author.user_sub, row.agent_key
    details = {"version": row.version, "verdict": opinion.verdict}
    await note(connection, Change.of(owner, author.actor, "review_procedure", procedure_id, **details))
    REVIEWS.labels(opinion.verdict).inc()
    return int(row.version)
