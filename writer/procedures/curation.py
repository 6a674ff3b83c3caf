"""A person's changes of procedure versions, each noted in the audit: pin, unpin, retire and review."""

from typing import Annotated
from uuid import UUID

from prometheus_client import Counter
from pydantic import AfterValidator, Field
from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.errors import NotFound
from retrieval.tables.kinds import ReviewVerdict
from retrieval.tables.procedures import procedure_reviews, procedures
from writer.audit import note
from writer.author import Author
from writer.privacy.redact import without_secrets
from writer.procedures.versions import locked_versions, version_update
from writer.run import Strict
from writer.storable import storable

REVIEWS = Counter("casebank_procedure_reviews_total", "Reviews of procedures by their verdict", ["verdict"])


class Review(Strict):
    """A person's review of a version of a procedure."""

    verdict: ReviewVerdict = Field(description="correct and complete, correct but incomplete, or wrong")
    note: Annotated[str, Field(max_length=2_000), AfterValidator(storable), AfterValidator(without_secrets)] = ""
    root_cause_right: bool | None = None
    steps_complete: bool | None = None
    version: int | None = Field(default=None, ge=1, le=2**31 - 1, description="version to review; null: the active one")


async def pin(connection: AsyncConnection, author: Author, procedure_id: UUID, version: int, *, pinned: bool) -> None:
    """Pins a version of a procedure, so that it is active and no revision replaces it, or unpins it.

    Raises:
        NotFound: the user has no such version.
    """
    rows = await locked_versions(connection, author.user_sub, procedure_id)
    row = next((row for row in rows if row.version == version), None)
    if row is None:
        raise NotFound("no such version of a procedure")
    if pinned:
        mine = procedures.c.user_sub == author.user_sub, procedures.c.id == procedure_id
        others = update(procedures).where(*mine, procedures.c.version != version)
        await connection.execute(others.where(procedures.c.status == "active").values(status="superseded"))
        await connection.execute(others.values(pinned=False))
    values = {"pinned": True, "status": "active"} if pinned else {"pinned": False}
    await connection.execute(version_update(author.user_sub, procedure_id, version).values(values))
    action = "pin_procedure" if pinned else "unpin_procedure"
    await note(connection, author.change(row.agent_key, action, procedure_id, version=version))


async def retire(connection: AsyncConnection, author: Author, procedure_id: UUID) -> int:
    """Retires the active version of a procedure and returns its number; later runs do not learn the procedure again.

    Raises:
        NotFound: the user has no such procedure, or no version of it is active.
    """
    rows = await locked_versions(connection, author.user_sub, procedure_id)
    row = next((row for row in rows if row.status == "active"), None)
    if row is None:
        raise NotFound("no such procedure, or no version of it is active")
    gone = version_update(author.user_sub, procedure_id, row.version)
    await connection.execute(gone.values(status="retired", pinned=False))
    await note(connection, author.change(row.agent_key, "retire_procedure", procedure_id, version=row.version))
    return int(row.version)


async def review(connection: AsyncConnection, author: Author, procedure_id: UUID, opinion: Review) -> int:
    """Stores the review of a procedure's version in place of an earlier review, and returns the version's number.

    Raises:
        NotFound: the user has no such version.
    """
    mine = procedures.c.user_sub == author.user_sub, procedures.c.id == procedure_id
    version = opinion.version
    which = procedures.c.status == "active" if version is None else procedures.c.version == version
    query = select(procedures.c.version, procedures.c.agent_key).where(*mine, which).with_for_update()
    row = (await connection.execute(query)).one_or_none()
    if row is None:
        raise NotFound("no version of this procedure is active" if version is None else "no such version")
    values = {**opinion.model_dump(exclude={"version"}), "actor": author.actor}
    key = {"user_sub": author.user_sub, "procedure_id": procedure_id, "version": row.version}
    stored = insert(procedure_reviews).values({**key, **values})
    newer = {name: stored.excluded[name] for name in (*values, "created_at")}
    newest = stored.on_conflict_do_update(index_elements=list(key), set_=newer)
    await connection.execute(newest)
    details = {"version": row.version, "verdict": opinion.verdict}
    await note(connection, author.change(row.agent_key, "review_procedure", procedure_id, **details))
    REVIEWS.labels(opinion.verdict).inc()
    return int(row.version)
