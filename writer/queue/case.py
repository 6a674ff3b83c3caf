"""A case that the worker has claimed: its row, its lessons, and the statements that take it off the queue."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Select, and_, cast, func, literal_column, select, update
from sqlalchemy.dialects.postgresql import REGCONFIG, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.ports import Vector
from retrieval.sealed import CaseWords
from retrieval.tables.cases import ERRORS, case_tools, cases
from retrieval.tables.columns import SEARCH_CONFIGURATION
from retrieval.tables.decisions import decisions
from retrieval.tables.kinds import Abstraction, AnalystChoice, CaseKind, RewardSource, RunOutcome
from retrieval.tables.profiles import profiles
from writer.analysis.placeholders import without_placeholders
from writer.analysis.recount import Recount
from writer.analysis.tool_use import ToolUse
from writer.errors import LeaseLost
from writer.facts.extract import FactDraft
from writer.privacy.words import Words
from writer.procedures import versions
from writer.procedures.learn_from_run import Lessons, UsedVersion
from writer.queue.lease import Lease, is_held


@dataclass(frozen=True, slots=True)
class ClaimedCase:
    """The columns of a claimed case that the worker reads, with three settings of its profile.

    Attributes:
        words: task and plan, sealed; ``plan`` then has a token for each step. None: both stand in plain in their
            columns.
        moves: keyed hashes of the moves of its plan; empty until the case was taught.
        payload: tool traces, turns, prompt snapshot, and the procedure that came with the run, sealed.
        source: the actor that retained the run.
        analyst, abstraction, least_success: the profile's settings of these names.
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
    analyst: AnalystChoice
    abstraction: Abstraction
    least_success: float


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
    """Counts by the calls' outputs; None: the run has no calls."""
    errors: Sequence[str] = ()
    """Signatures of the errors in the run, see ``error_signatures``."""
    seal: Words | None = None
    """The user's; None until the case is opened."""
    terms: Sequence[int] = ()
    """Keyed hashes of the task's words."""
    moves: Sequence[int] = ()
    """Keyed hashes of the plan's moves."""
    vector: Vector | None = None
    opened: Mapping[str, Any] = field(default_factory=dict)
    """The decrypted payload; empty before it is opened and after the run was learned from."""
    origin: Mapping[str, str] = field(default_factory=dict)
    """Ids of the request that retained the run, see ``retrieval.telemetry.origin``; empty until the case is opened."""
    trigger_vectors: Sequence[Vector | None] = ()
    """Vectors of the learned procedures' triggers, one for each."""

    @property
    def texts(self) -> list[str]:
        """Returns the texts to embed: the task, then the triggers of the learned procedures."""
        return [self.text.task, *map(without_placeholders, self.taught.triggers())]


_OF_THE_PROFILE = ("analyst", "abstraction", "least_success")


def claimed(user_sub: str, lease_token: UUID, case_ids: Sequence[UUID]) -> Select[*tuple[Any, ...]]:
    """Returns a statement that selects ``ClaimedCase`` rows: those of the cases that the lease still holds."""
    columns = [(profiles if each.name in _OF_THE_PROFILE else cases).c[each.name] for each in fields(ClaimedCase)]
    profile = and_(profiles.c.user_sub == cases.c.user_sub, profiles.c.agent_key == cases.c.agent_key)
    return (
        select(*columns)
        .join(profiles, profile)
        .where(
            cases.c.user_sub == user_sub,
            cases.c.id.in_(case_ids),
            cases.c.lease_token == lease_token,
            cases.c.status == "pending",
        )
    )


async def used_by(connection: AsyncConnection, user_sub: str, case: ClaimedCase) -> list[UsedVersion]:
    """Returns the procedures that the run used and whose version shown to it is still the active one."""
    if not case.used_procedure_ids:
        return []
    log = select(decisions.c.procedure_ids, decisions.c.procedure_versions).where(
        decisions.c.user_sub == user_sub, decisions.c.id == case.retrieval_id
    )
    logged = (await connection.execute(log)).one_or_none()
    shown = dict(zip(logged.procedure_ids, logged.procedure_versions, strict=True)) if logged is not None else {}
    active = await versions.revisable(connection, user_sub, case.agent_key, case.used_procedure_ids)
    return [each for each in active if shown.get(each.id, each.version) == each.version]


async def close(connection: AsyncConnection, work: Work, kept: UUID | None) -> None:
    """Takes the case off the queue: as ready, or as merged into the case ``kept`` if that is given.

    The numbers by which the case is ranked are stored with it.

    Raises:
        LeaseLost: another worker has the case, or it is gone.
    """
    done = (
        update(cases)
        .where(is_held(cases, work.held))
        .values(
            terms=list(work.terms),
            moves=list(work.moves),
            status="ready" if kept is None else "merged",
            merged_into=kept,
            lease_token=None,
            last_error=None,
            available_at=func.now(),
        )
    )
    if (await connection.execute(done)).rowcount != 1:
        raise LeaseLost("the lease ran out, or the case is gone")


async def remember_errors(connection: AsyncConnection, held: Lease, errors: Sequence[str]) -> None:
    """Adds the error signatures to the case's search index, with weight ERRORS; they are stored nowhere else."""
    if not errors:
        return
    words = func.to_tsvector(cast(SEARCH_CONFIGURATION, REGCONFIG), "\n".join(errors))
    labelled = func.setweight(words, literal_column(f"'{ERRORS}'"))
    row = update(cases).where(cases.c.user_sub == held.user_sub, cases.c.id == held.row_id)
    await connection.execute(row.values(search_vector=cases.c.search_vector.concat(labelled)))


async def remember_tools(connection: AsyncConnection, held: Lease, uses: Sequence[ToolUse]) -> None:
    """Inserts the tool use of the case's run, one row for each tool, in one statement; merged cases get rows, too."""
    if uses:
        case = {"user_sub": held.user_sub, "case_id": held.row_id, "agent_key": held.agent_key}
        await connection.execute(insert(case_tools).values([{**case, **asdict(use)} for use in uses]))
