"""Reads what was said in sessions: takes those with new turns off the queue, and stores what is told."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from prometheus_client import Counter
from sqlalchemy import Update, case, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.database import Database
from retrieval.database.rows import Rows
from retrieval.errors import DatabaseUnavailable, UserErased
from retrieval.sessions.messages import Turn
from retrieval.tables.sessions import sessions
from retrieval.telemetry import log
from writer.errors import LeaseLost
from writer.facts.extract import Told, extract
from writer.facts.store import Provenance, tell
from writer.privacy.keys import Keyring
from writer.privacy.master_keys import MasterKeyMismatch
from writer.privacy.words import Words
from writer.profiles import Profile, lock_profile
from writer.sessions.lock import turns_after
from writer.worker import queue
from writer.worker.claims import Claims, Leased
from writer.worker.summarist import Summarist

READ = Counter("casebank_sessions_read_total", "Sessions that were read for facts, by how that ended", ["how"])
MOST_TURNS = 200
"""That are read of a session at a time; of more the rest waits for another turn in the queue."""


@dataclass(slots=True)
class SessionReader:
    """Reads sessions for the worker; users take turns as with cases."""

    database: Database
    keyring: Keyring
    lease: timedelta
    max_attempts: int
    backoff_s: float
    backoff_max_s: float
    rng: random.Random
    summarist: Summarist | None = None
    """Who has sessions summarised by a language model; None where the service has none."""
    claims: Claims = field(init=False)

    def __post_init__(self) -> None:
        """Takes sessions off their queue."""
        self.claims = Claims(self.database, sessions, self.lease, self.max_attempts)

    async def run_once(self, batch: int) -> int:
        """Reads up to so many sessions, and returns how many there were, whatever became of them.

        Raises:
            DatabaseUnavailable: those claimed come back when their lease ends.
        """
        claims = await self.claims.take(batch)
        ended = [await self._read(held) for held in claims]
        for how in ended:
            READ.labels(how).inc()
        if self.summarist is not None:  # last, for a model may be slow
            for held, how in zip(claims, ended, strict=True):
                if how == "ready":
                    await self._summarise(self.summarist, held)
        return len(claims)

    async def _read(self, held: Leased) -> str:
        """Reads one session, and returns how that ended."""
        try:
            async with self.database.as_user(held.user_sub, held.claimed_at) as connection:
                await self._store(connection, held)
        except (UserErased, LeaseLost) as gone:
            return type(gone).__name__
        except DatabaseUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - one bad session must not stop those behind it
            await self._hand_back(held, error)
            return "failed"
        return "ready"

    async def _summarise(self, summarist: Summarist, held: Leased) -> None:
        """Has the session summarised; whatever fails there costs nobody anything else."""
        try:
            await summarist.summarise(Profile(held.user_sub, held.agent_key, held.claimed_at), held.row_id)
        except (UserErased, DatabaseUnavailable) as error:
            log.info("sessions.not_summarised", error=type(error).__name__)
        except Exception as error:  # noqa: BLE001 - one bad session must not stop those behind it
            log.warning("sessions.summary_failed", error=type(error).__name__)

    async def _store(self, connection: AsyncConnection, held: Leased) -> None:
        key = await self.keyring.find(connection, held.user_sub)
        read = await connection.scalar(read_so_far(held))
        if key is None or read is None:
            raise LeaseLost("the lease ran out, or the session is gone")
        words = Words(held.user_sub, key)
        rows = (await connection.execute(turns_after(held.user_sub, held.row_id, read).limit(MOST_TURNS))).all()
        turns = [Turn(r.number, r.said_at, words.open_turn(held.row_id, r.number, r.payload)) for r in rows]
        found = await asyncio.to_thread(facts_in, turns)
        if found:
            await lock_profile(connection, held.user_sub, held.agent_key)
        for turn, told in found:
            source = Provenance(
                held.agent_key, "worker", "turn", turn.said_at, session_id=held.row_id, turn_number=turn.number
            )
            await tell(connection, words, told, source)
        if (await connection.execute(close(held, turns[-1].number if turns else read))).rowcount != 1:
            raise LeaseLost("the lease ran out, or the session is gone")

    async def _hand_back(self, held: Leased, error: Exception) -> None:
        # a key that this process was not given is no fault of the session
        dead = held.attempts >= self.max_attempts and not isinstance(error, MasterKeyMismatch)
        delay = queue.backoff(held.attempts, self.backoff_s, self.backoff_max_s, self.rng)
        name = type(error).__name__  # alone: a message could quote what the user said
        async with self.database.as_worker() as connection:
            await connection.execute(queue.hand_back(held, name, delay, dead=dead, queue=sessions))
        log.warning("sessions.read_failed", error=name, attempts=held.attempts, dead=dead)


def facts_in(turns: Sequence[Turn]) -> list[tuple[Turn, Told]]:
    """Returns what the user's own turns tell, in their order; nothing of what the assistant or a tool says."""
    return [(turn, told) for turn in turns if turn.is_the_users for told in extract(turn.said, turn.said_at.date())]


def facts_in_run(messages: Sequence[Mapping[str, Any]], said_at: datetime) -> list[Told]:
    """Returns what the user's own turns in a run tell."""
    turns = [Turn(number, said_at, message) for number, message in enumerate(messages, start=1)]
    return [told for _, told in facts_in(turns)]


def read_so_far(held: Leased) -> Rows:
    """Returns the statement for the number of the last turn that was read; no row where the lease is lost."""
    return select(sessions.c.read_turns).where(
        sessions.c.user_sub == held.user_sub,
        sessions.c.id == held.row_id,
        sessions.c.lease_token == held.lease_token,
        sessions.c.status == "pending",
    )


def close(held: Leased, last: int) -> Update:
    """Returns the statement that takes the session off the queue, unless more was said since."""
    done = update(sessions).where(
        sessions.c.user_sub == held.user_sub,
        sessions.c.id == held.row_id,
        sessions.c.lease_token == held.lease_token,
        sessions.c.status == "pending",
    )
    return done.values(
        status=case((sessions.c.turn_count > last, "pending"), else_="ready"),
        read_turns=last,
        attempts=0,
        lease_token=None,
        last_error=None,
        available_at=func.now(),
    )
