"""Replays the past runs of a profile, and stores which order of cases ranks best: after new cases, and at night.

By day, a profile is due when its new cases are a twentieth of the cases of its last replay. The cost of a replay grows
with the number of cases, and so does the number of new cases between two replays. At night, a profile is due if a case
is new or gone, was changed, as by a reward, or got a vector, as of another embedding model, or if another version of
casebank stored the last replay.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime

import numpy as np
from sqlalchemy import REAL, and_, cast, delete, exists, func, select
from sqlalchemy.dialects.postgresql import ARRAY, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from policy.fit import FIRST_ORDER, Fit
from policy.history import History, trust_of
from policy.replay import CHOICE, Replay, Tally, replay
from policy.weights import WeightsError, pack_fit, unpack_fit
from retrieval.database.database import Database
from retrieval.database.rows import AnyRow, Rows
from retrieval.errors import UserErased
from retrieval.search.bank import newest_run
from retrieval.tables.cases import case_embeddings, cases
from retrieval.tables.kinds import has_failed, went_well
from retrieval.tables.profiles import profiles, replays
from writer.profiles import Profile

NEWEST = 400
"""Maximum number of a profile's cases that are replayed, the newest ones."""
FRESH = 0.05
"""Number of new cases, as a share of the cases of the last replay, at which a profile is due by day."""
_READ = cases.c.status == "ready", cases.c.outcome != "aborted"
"""SQL conditions of the cases that are replayed."""


async def replay_if_due(
    database: Database, profile: Profile, *, at_night: bool = False, first_order: str = FIRST_ORDER
) -> Replay | None:
    """Replays the profile if it is due, stores the result and returns it; None if it is not due.

    A profile that has no case to read any more loses the result of its last replay.

    Raises:
        DatabaseUnavailable: nothing was stored.
    """
    try:
        async with database.as_user(profile.user_sub, profile.seen_at) as connection:
            if not await _is_due(connection, profile, at_night=at_night):
                return None
            read_at = (await connection.execute(select(func.clock_timestamp()))).scalar_one()
            rows = (await connection.execute(_newest(profile))).all()[::-1]  # oldest first
            if not rows:  # all are gone, and so is what they taught
                mine = replays.c.user_sub == profile.user_sub, replays.c.agent_key == profile.agent_key
                await connection.execute(delete(replays).where(*mine))
                return None
        history = history_of(rows)
        found = await asyncio.to_thread(replay, history, first_order)
        async with database.as_user(profile.user_sub, profile.seen_at) as connection:
            await _store(connection, profile, found, rows, read_at)
    except UserErased:
        return None
    return found


async def _is_due(connection: AsyncConnection, profile: Profile, *, at_night: bool) -> bool:
    last = select(replays.c.runs, replays.c.newest, replays.c.created_at).where(
        replays.c.user_sub == profile.user_sub, replays.c.agent_key == profile.agent_key
    )
    known = (await connection.execute(last)).one_or_none()
    mine = cases.c.user_sub == profile.user_sub, cases.c.agent_key == profile.agent_key
    number = select(func.count()).where(*mine)
    if known is None:
        return bool(await connection.scalar(number.where(*_READ)))
    new = await connection.scalar(number.where(*_READ, cases.c.created_at > known.newest)) or 0
    if not at_night:
        return new > 0 and new >= FRESH * known.runs
    of_profile = case_embeddings.c.user_sub == profile.user_sub, case_embeddings.c.agent_key == profile.agent_key
    embedded = exists().where(*of_profile, case_embeddings.c.created_at > known.created_at)
    of_these = func.count().filter(cases.c.updated_at > known.created_at), func.count().filter(and_(*_READ))
    changed, left, has_new_vectors = (await connection.execute(select(*of_these, embedded).where(*mine))).one()
    return (
        new > 0
        or changed > 0
        or has_new_vectors
        or min(left, NEWEST) < known.runs
        or await stored_replay(connection, profile.user_sub, profile.agent_key) is None
    )


def _newest(profile: Profile) -> Rows:
    """Returns the statement for the profile's NEWEST ready cases, the newest first, each with its vector or NULL."""
    near = and_(
        case_embeddings.c.user_sub == profile.user_sub,
        case_embeddings.c.agent_key == profile.agent_key,
        case_embeddings.c.model == profiles.c.embedding_model,
        case_embeddings.c.case_id == cases.c.id,
    )
    mine = profiles.c.user_sub == profile.user_sub, profiles.c.agent_key == profile.agent_key
    names = ("created_at", "terms", "moves", "outcome", "reward", "reward_source", "proven")
    vector = cast(case_embeddings.c.embedding, ARRAY(REAL)).label("vector")
    return (
        select(*(cases.c[name] for name in names), newest_run().label("newest_run"), vector)
        .join_from(
            profiles, cases, and_(cases.c.user_sub == profiles.c.user_sub, cases.c.agent_key == profiles.c.agent_key)
        )
        .outerjoin(case_embeddings, near)
        .where(*mine, *_READ)
        .order_by(cases.c.created_at.desc(), cases.c.id.desc())
        .limit(NEWEST)
    )


def history_of(rows: Sequence[AnyRow]) -> History:
    """Returns cases as the history that ``policy.replay`` reads, from rows of ``_newest``, the oldest first.

    A task counts only once a day, so that repeating a task does not raise its weight: a proven run of it, or else the
    day's first.
    """
    dimension = max((len(row.vector) for row in rows if row.vector is not None), default=0)
    missing = [0.0] * dimension
    trust = trust_of(np.array([row.proven for row in rows], dtype=np.bool_))
    well, failed = (
        np.array([told(row.outcome, row.reward, row.reward_source) for row in rows], dtype=np.bool_)
        for told in (went_well, has_failed)
    )
    asked: set[tuple[date, tuple[int, ...]]] = set()
    first = np.zeros(len(rows), dtype=np.float32)
    for index in np.argsort(-trust, kind="stable"):
        question = rows[index].created_at.date(), tuple(sorted(rows[index].terms))
        if well[index] and question not in asked:
            first[index] = 1
            asked.add(question)
    return History(
        times=np.array([row.created_at.timestamp() for row in rows], dtype=np.float64),
        terms=[np.array(row.terms, dtype=np.int32) for row in rows],
        vectors=np.array(
            [missing if row.vector is None or len(row.vector) != dimension else row.vector for row in rows], np.float32
        ).reshape(len(rows), dimension),
        moves=[np.array(row.moves, dtype=np.int32) for row in rows],
        went_well=well,
        failed=failed,
        trust=trust,
        weight=trust * first,
        newest=np.array([row.newest_run.timestamp() for row in rows], dtype=np.float64),
    )


async def _store(
    connection: AsyncConnection, profile: Profile, found: Replay, rows: Sequence[AnyRow], read_at: datetime
) -> None:
    """Stores the result of a replay, unless one whose rows were read later is stored already."""
    mine = {"user_sub": profile.user_sub, "agent_key": profile.agent_key}
    values = {
        "runs": len(rows),
        "questions": found.questions,
        "serves": found.fit.order,
        "tallies": {name: asdict(tally) for name, tally in found.tallies.items()},
        "fit": pack_fit(found.fit),
        "unlike": found.unlike,
        "newest": rows[-1].created_at,
        "created_at": read_at,
    }
    stored = insert(replays).values({**mine, **values})
    newer = {name: stored.excluded[name] for name in values}
    is_newer = replays.c.created_at <= stored.excluded.created_at
    await connection.execute(stored.on_conflict_do_update(index_elements=list(mine), set_=newer, where=is_newer))


@dataclass(frozen=True, slots=True)
class StoredReplay:
    """The stored result of a replay, see ``policy.replay.Replay``."""

    runs: int
    questions: int
    serves: str
    tallies: Mapping[str, Tally]
    fit: Fit
    created_at: datetime

    def sentence(self) -> str:
        """Returns the result of the replay in one sentence, for people."""
        if not self.questions:
            return (
                "Nothing can be replayed yet: no run that went well has an earlier run with a plan like its own; what"
                " nearly all plans have in common counts little."
            )
        shares = ", ".join(f"{SPOKEN[name]} {self.tallies[name].first:.0%}" for name in ("words", "meaning", CHOICE))
        choice = self.tallies[CHOICE]
        runs, own = ("run", "its") if self.questions == 1 else (f"{self.questions} runs", "their")
        return (
            f"On the last {runs} that went well and had an earlier run with a plan like {own} own, a plan that worked"
            " would have stood first: "
            f"{shares} ({choice.low:.0%} to {choice.high:.0%}), which serves, now by {SPOKEN[self.serves]}."
        )


SPOKEN = {
    "words": "words in common",
    "rare": "rare words in common",
    "meaning": "meaning",
    "fused": "rank fusion",
    "telling": "telling words in common",
    "mixture": "mixture of all",
    "vote": "vote of the plans",
    "outcomes": "vote of the plans, less those that failed lately",
    CHOICE: "what this bank has learned",
}
"""Names of the orders of cases, for people."""


async def stored_replay(connection: AsyncConnection, user_sub: str, agent_key: str) -> StoredReplay | None:
    """Returns the latest stored replay of the profile; None: there is none, or another version stored it."""
    mine = replays.c.user_sub == user_sub, replays.c.agent_key == agent_key
    row = (await connection.execute(select(replays).where(*mine))).one_or_none()
    if row is None or set(row.tallies) != set(SPOKEN):
        return None
    try:
        fit = unpack_fit(row.fit)
    except WeightsError:
        return None
    tallies = {name: Tally(**row.tallies[name]) for name in SPOKEN}  # in this order, which jsonb does not keep
    return StoredReplay(row.runs, row.questions, row.serves, tallies, fit, row.created_at)
