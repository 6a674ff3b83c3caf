"""Handles sessions with new turns: stores the facts in the turns, and has a language model summarise the sessions."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from prometheus_client import Counter
from sqlalchemy import Update, case, func, select, update

from retrieval.errors import DatabaseUnavailable, UserErased
from retrieval.sessions.messages import SessionTurn
from retrieval.tables.sessions import sessions
from retrieval.telemetry import log
from writer.errors import LeaseLost
from writer.facts.draft import FactDraft
from writer.facts.extract import read
from writer.facts.store import Provenance, store_facts
from writer.privacy.keys import Keyring
from writer.profiles import Profile, lock_profile
from writer.queue.lease import Lease, is_held
from writer.queue.queue import LOOK_S, Queue
from writer.queue.summarist import Summarist
from writer.sessions.lock import turns_after, turns_in

READ = Counter("casebank_sessions_read_total", "Sessions that were read for facts, by how that ended", ["how"])
MOST_TURNS = 200
"""Maximum turns of a session that are read at a time; the session is then queued again for the others."""
MOST_FACTS = 1_000
"""Number of facts after which no further turns of a session are read at a time, and no further turns of a run at all.

The facts are stored on the event loop, where 1,000 take some 0.1 s.
"""


@dataclass(slots=True)
class SessionHandler:
    """Stores the facts in sessions' new turns, and has the sessions summarised.

    Attributes:
        summarist: summarises sessions by a language model; None: the service has none.
    """

    queue: Queue
    keyring: Keyring
    summarist: Summarist | None = None
    _to_summarise: OrderedDict[str, OrderedDict[UUID, Profile]] = field(default_factory=OrderedDict, init=False)
    """Profiles of the sessions that were read, and for which no summary was looked for since; by user, the next first.

    The first entry of a plain dict takes the longer to find, the more entries before it were removed.
    """

    async def handle(self, leases: Sequence[Lease]) -> None:
        """Stores the facts of all leased sessions, the oldest first.

        Raises:
            DatabaseUnavailable: some sessions were not read, or not completely.
        """
        for lease in sorted(leases, key=lambda each: each.row_id):
            how = await self.queue.attempt([lease], self.read(lease))
            READ.labels(how).inc()
            if how == "ready" and self.summarist is not None:
                waiting = self._to_summarise.setdefault(lease.user_sub, OrderedDict())
                waiting[lease.row_id] = Profile(lease.user_sub, lease.agent_key, lease.claimed_at)

    async def summarise(self) -> bool:
        """Has the first of the sessions that were read summarised, users taking turns; returns False if none was left.

        Sessions for which no summary is due are passed over, for LOOK_S. A summary that fails is due again after
        further turns.
        """
        began = time.monotonic()
        while self._to_summarise and self.summarist is not None:
            user_sub, waiting = self._to_summarise.popitem(last=False)
            session_id, profile = waiting.popitem(last=False)
            if waiting:
                self._to_summarise[user_sub] = waiting  # behind the other users
            try:
                done = await self.summarist.summarise(profile, session_id)
                if done or (self._to_summarise and time.monotonic() - began >= LOOK_S):
                    return True
            except (UserErased, DatabaseUnavailable) as error:
                log.info("sessions.not_summarised", error=type(error).__name__)
                return True
            except Exception as error:  # noqa: BLE001 - one bad session must not stop those behind it
                log.warning("sessions.summary_failed", error=type(error).__name__)
        return False

    async def read(self, lease: Lease) -> str:
        """Stores the facts in the session's new turns, and takes the session off the queue, in one transaction.

        Turns that do not decrypt are left out.

        Raises:
            LeaseLost: another worker has the session, or the session was deleted.
            SealBroken: none of the new turns decrypts.
        """
        async with self.queue.database.as_user(lease.user_sub, lease.claimed_at) as connection:
            words = await self.keyring.find(connection, lease.user_sub)
            read = await connection.scalar(select(sessions.c.read_turns).where(is_held(sessions, lease)))
            if words is None or read is None:
                raise LeaseLost("the lease ran out, or the session is gone")
            rows = (await connection.execute(turns_after(lease.user_sub, lease.row_id, read).limit(MOST_TURNS))).all()
            turns = await asyncio.to_thread(turns_in, words, lease.row_id, rows)
            facts = await asyncio.to_thread(facts_in, turns)
            if facts:
                await lock_profile(connection, lease.user_sub, lease.agent_key)
            in_session = partial(Provenance, lease.agent_key, "worker", "turn", session_id=lease.row_id)
            stated = [(fact, in_session(turn.said_at, turn_number=turn.number)) for turn, fact in facts]
            await store_facts(connection, words, lease.agent_key, stated)
            last = facts[-1][0].number if len(facts) >= MOST_FACTS else rows[-1].number if rows else read
            if (await connection.execute(close(lease, last))).rowcount != 1:
                raise LeaseLost("the lease ran out, or the session is gone")
        return "ready"


def facts_in(turns: Sequence[SessionTurn]) -> list[tuple[SessionTurn, FactDraft]]:
    """Returns the facts that the user's own turns of a session state or end, each with its turn, in order.

    The turns after the one with the fact number MOST_FACTS are not read. The day of a turn is the day in the time zone
    of its time.
    """
    facts: list[tuple[SessionTurn, FactDraft]] = []
    for turn in turns:
        if turn.is_the_users and len(facts) < MOST_FACTS:
            facts += [(turn, fact) for fact in read(turn.said, turn.said_at.date())]
    return facts


def facts_in_run(messages: Sequence[Mapping[str, Any]], said_at: datetime) -> list[FactDraft]:
    """Returns the facts that the user's own turns of a run state or end, in order."""
    turns = [SessionTurn(number, said_at, message) for number, message in enumerate(messages, start=1)]
    return [fact for _, fact in facts_in(turns)]


def close(held: Lease, last: int) -> Update:
    """Returns a statement that stores ``last`` as the last turn read, and takes the session off the queue.

    A session with turns after ``last`` stays in the queue.
    """
    done = update(sessions).where(is_held(sessions, held))
    return done.values(
        status=case((sessions.c.turn_count > last, "pending"), else_="ready"),
        read_turns=last,
        attempts=0,
        lease_token=None,
        last_error=None,
        available_at=func.now(),
    )
