"""A case that the worker has claimed: its row, the lessons of its run, and statements that take it off the queue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import cache
from itertools import groupby
from operator import attrgetter
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Integer,
    Select,
    Table,
    Text,
    Update,
    Uuid,
    and_,
    bindparam,
    case,
    cast,
    func,
    literal,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import REGCONFIG
from sqlalchemy.ext.asyncio import AsyncConnection

from policy.channels import searchable
from retrieval.ports import Vector
from retrieval.sealed import CaseWords
from retrieval.tables.cases import ERRORS, cases
from retrieval.tables.columns import SEARCH_CONFIGURATION
from retrieval.tables.decisions import decisions
from retrieval.tables.kinds import Abstraction, AnalystChoice, CaseKind, RewardSource, RunOutcome
from retrieval.tables.profiles import profiles
from writer.analysis.fixes import RunFailure
from writer.analysis.recount import Recount
from writer.analysis.tool_use import ToolUse
from writer.facts.draft import FactDraft
from writer.privacy.words import Words
from writer.procedures import versions
from writer.procedures.learn_from_run import Lessons, UsedVersion
from writer.queue.lease import Lease
from writer.storable import storable


@dataclass(frozen=True, slots=True)
class ClaimedCase:
    """The columns of a claimed case that the worker reads, with four settings of its profile.

    Attributes:
        words: task and plan, encrypted; ``plan`` then has a token for each step. None: the columns ``task`` and
            ``plan`` have both in plain text.
        moves: keyed hashes of the moves of the case's plan; empty until the worker has learned from the run.
        payload: tool traces, turns, prompt snapshot, and the procedure that came with the run, encrypted.
        source: the actor that retained the run.
        analyst, abstraction, least_success, embedding_model: the profile's settings of these names.
        is_new: true if the worker has not learned from the run yet.
    """

    id: UUID
    agent_key: str
    kind: CaseKind
    task: str
    plan: list[str]
    words: bytes | None
    effects: list[str]
    tags: list[str]
    outcome: RunOutcome
    reward: float | None
    reward_source: RewardSource | None
    error_count: int
    message_hash: bytes
    retrieval_id: UUID | None
    moves: list[int]
    used_case_ids: list[UUID] | None
    used_procedure_ids: list[UUID] | None
    payload: bytes
    source: str
    session_id: UUID | None
    created_at: datetime
    key_id: UUID
    analyst: AnalystChoice
    abstraction: Abstraction
    least_success: float
    embedding_model: str | None
    is_new: bool = True


@dataclass(slots=True)
class Work:
    """A claimed case and the lessons of its run; the lessons are empty until the worker has learned from it."""

    held: Lease
    case: ClaimedCase
    text: CaseWords = field(default_factory=lambda: CaseWords("", []))
    """Task and plan; empty until the case is opened."""
    facts: Sequence[FactDraft] = ()
    """Facts in the user's turns; empty for a run of a session, whose turns are read with the session."""
    used: Sequence[UsedVersion] = ()
    taught: Lessons = field(default_factory=Lessons)
    tools: Sequence[ToolUse] = ()
    counts: Recount | None = None
    """Counts of the run's errors and effects by the calls' outputs; None: the run has no calls."""
    errors: Sequence[str] = ()
    """Signatures of the errors in the run, see ``error_signatures``."""
    failures: Sequence[RunFailure] = ()
    """Failures of the run, each with its fix."""
    seal: Words = field(init=False)
    """Encrypts, decrypts and hashes with the user's key; set when the case is opened."""
    terms: Sequence[int] = ()
    """Keyed hashes of the task's words."""
    corrected_plan: dict[str, object] = field(default_factory=dict)
    """New columns of the case if the calls' outputs change its plan; empty: the plan stays."""
    moves: Sequence[int] = ()
    """Keyed hashes of the plan's moves."""
    vectors: Sequence[Vector | None] = ()
    """Vectors of the texts that the handler embeds, one for each."""
    opened: Mapping[str, Any] = field(default_factory=dict)
    """The decrypted payload; empty before it is opened and after the run was learned from."""
    payload_bytes: int = 0
    """Bytes of the decrypted payload as JSON; 0 before it is opened."""
    origin: Mapping[str, str] = field(default_factory=dict)
    """Ids of the request that retained the run, see ``retrieval.telemetry.origin``; empty until the case is opened."""
    now: ClaimedCase = field(init=False)
    """The case with the worker's corrections, and with the reward and actor that its row has when the work ends."""

    def __post_init__(self) -> None:
        """Begins with the case as it was claimed."""
        self.now = self.case

    @property
    def owner(self) -> tuple[str, str]:
        """Returns the case's user and agent."""
        return self.held.user_sub, self.held.agent_key


def by_agent(batch: Sequence[Work]) -> list[tuple[tuple[str, str], list[Work]]]:
    """Returns the works of each user and agent, in the order of the batch."""
    owner = attrgetter("owner")
    return [(each, list(works)) for each, works in groupby(sorted(batch, key=owner), key=owner)]


_OF_THE_PROFILE = ("analyst", "abstraction", "least_success", "embedding_model")


def claimed(
    user_sub: str, lease_token: UUID, case_ids: Sequence[UUID], queue: Table = cases
) -> Select[*tuple[Any, ...]]:
    """Returns a statement that selects, as ``ClaimedCase`` rows by id, those of these cases that the lease still holds.

    ``queue`` is the table of the lease: ``cases``, or ``reflections``, whose rows have the ids of their cases.
    """
    columns: list[Any] = [
        (profiles if each.name in _OF_THE_PROFILE else cases).c[each.name]
        for each in fields(ClaimedCase)
        if each.name != "is_new"
    ]
    is_new = literal(value=True).label("is_new") if queue is cases else queue.c.is_new
    profile = and_(profiles.c.user_sub == cases.c.user_sub, profiles.c.agent_key == cases.c.agent_key)
    of_case = _held_in(queue, user_sub, lease_token, case_ids)
    return select(*columns, is_new).join_from(cases, profiles, profile).where(*of_case).order_by(cases.c.id)


def _held_in(
    queue: Table, user_sub: str, lease_token: UUID, case_ids: Sequence[UUID]
) -> tuple[ColumnElement[bool], ...]:
    """Returns the conditions that a case is one of these and that its row in the queue is held by the lease."""
    return (
        cases.c.user_sub == user_sub,
        cases.c.id.in_(case_ids),
        queue.c.user_sub == user_sub,
        queue.c.id == cases.c.id,
        queue.c.lease_token == lease_token,
        queue.c.status == "pending",
    )


async def used_by(connection: AsyncConnection, user_sub: str, claimed_case: ClaimedCase) -> list[UsedVersion]:
    """Returns the procedures that a run used, if the version that the run was shown is still the active one."""
    if not claimed_case.used_procedure_ids:
        return []
    log = select(decisions.c.procedure_ids, decisions.c.procedure_versions).where(
        decisions.c.user_sub == user_sub, decisions.c.id == claimed_case.retrieval_id
    )
    logged = (await connection.execute(log)).one_or_none()
    shown = dict(zip(logged.procedure_ids, logged.procedure_versions, strict=True)) if logged is not None else {}
    active = await versions.revisable(connection, user_sub, claimed_case.agent_key, claimed_case.used_procedure_ids)
    return [each for each in active if shown.get(each.id, each.version) == each.version]


async def lock_held(connection: AsyncConnection, batch: Sequence[Work], queue: Table = cases) -> list[Work]:
    """Locks those cases of one user that their leases still hold, and returns them as their rows are now.

    Feedback may have changed a reward since the case was claimed, and an erasure the actor's name. A case is left out
    if another worker claimed it, if it was deleted, or if its words were sealed or unsealed: what was computed of it
    has the other form.
    """
    lease = batch[0].held
    held = (
        select(
            *(cases.c[name] for name in ("id", "reward", "reward_source", "source")),
            cases.c.words.is_not(None).label("sealed"),
        )
        .where(*_held_in(queue, lease.user_sub, lease.lease_token, [work.held.row_id for work in batch]))
        .order_by(cases.c.id)
        .with_for_update()
    )
    now = {(row.id, row.sealed): row for row in await connection.execute(held)}
    locked = [work for work in batch if (work.held.row_id, work.case.words is not None) in now]
    for work in locked:
        row, moves = now[work.held.row_id, work.case.words is not None], list(work.moves) or work.case.moves
        work.now = replace(
            work.case, moves=moves, reward=row.reward, reward_source=row.reward_source, source=row.source
        )
    return locked


async def close(connection: AsyncConnection, batch: Sequence[Work], kept: Mapping[UUID, UUID]) -> None:
    """Takes cases off the queue, and stores the keyed hashes by which they are ranked.

    The signatures of a run's errors join the case's search index, with weight ERRORS; they are stored nowhere else.

    ``kept`` has, for each case that repeats another, that other case; repeats become merged, and all other cases ready.
    """
    rows = [
        {
            "owner": work.held.user_sub,
            "case_id": work.held.row_id,
            "stored_terms": list(work.terms),
            "stored_moves": list(work.moves),
            "ends_as": "merged" if work.held.row_id in kept else "ready",
            "kept": kept.get(work.held.row_id),
            "errors": searchable(storable("\n".join(work.errors))),
        }
        for work in batch
    ]
    await connection.execute(_closing(), rows)


@cache
def _closing() -> Update:
    errors = bindparam("errors", type_=Text)
    words = func.setweight(
        func.to_tsvector(cast(SEARCH_CONFIGURATION, REGCONFIG), errors), literal_column(f"'{ERRORS}'")
    )
    return (
        update(cases)
        .where(cases.c.user_sub == bindparam("owner", type_=Text), cases.c.id == bindparam("case_id", type_=Uuid))
        .values(
            terms=bindparam("stored_terms", type_=ARRAY(Integer)),
            moves=bindparam("stored_moves", type_=ARRAY(Integer)),
            status=bindparam("ends_as", type_=Text),
            merged_into=bindparam("kept", type_=Uuid),
            search_vector=case((errors != "", cases.c.search_vector.concat(words)), else_=cases.c.search_vector),
            lease_token=None,
            last_error=None,
            available_at=func.now(),
        )
    )
