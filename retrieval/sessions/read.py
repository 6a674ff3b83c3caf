"""Reads a session backwards from its newest turn, as far as a budget of tokens reaches."""

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Integer, Text, and_, bindparam, literal_column, or_, select

from retrieval.database.fast_path import FastConnection, FastStatement, Record
from retrieval.database.parameters import USER_SUB, may_enter, parameter
from retrieval.errors import SealBroken
from retrieval.sealed import UNREADABLE, SealOf, UserSeal
from retrieval.sections.quotes import Quotes, conversation_line
from retrieval.sessions.fitting import SHORT_SHARE, fit
from retrieval.sessions.messages import SessionTurn
from retrieval.sessions.summary import Item, Written, chosen
from retrieval.tables.kinds import SummaryChoice
from retrieval.tables.profiles import profiles
from retrieval.tables.sessions import session_summaries, sessions, turns
from retrieval.tokens import count_tokens

PAGE = 100
MOST_SUMMARISED = 1_000
"""Largest number of turns, before those that fit, that are summarised; of older turns only the first one is."""


@dataclass(frozen=True, slots=True)
class View:
    """The part of a session that fits a budget.

    Attributes:
        turns: the newest turns that fit, the oldest first.
        items: summary of the turns that do not fit, in their order.
    """

    agent_key: str
    turn_count: int
    last_turn_at: datetime
    created_at: datetime
    turns: Sequence[SessionTurn] = ()
    items: Sequence[Item] = ()

    @property
    def left_out(self) -> int:
        """Number of the session's turns that are not among ``turns``; the summary covers some of them."""
        return self.turn_count - len(self.turns)

    @property
    def summary_by(self) -> SummaryChoice:
        """Author of the summary: a language model, if it wrote some line, or else the rules."""
        return "llm" if any(item.by == "llm" for item in self.items) else "rules"


@dataclass(slots=True)
class SessionReader:
    """Reads one session of the connection's user.

    Attributes:
        seal_of: function that returns the user's seal for a key's id.
        cost_of_turn: function that returns the tokens of a turn.
        cost_of_line: function that returns the tokens of a line of the summary.
    """

    connection: FastConnection
    name: str
    seal_of: SealOf
    cost_of_turn: Callable[[SessionTurn], int]
    cost_of_line: Callable[[str], int]
    _head: Record | None = field(default=None, init=False)
    _seal: UserSeal | None = field(default=None, init=False)

    async def view(self, budget: int) -> View | None:
        """Returns the newest turns that fit the budget, and a summary of earlier ones; None: there is no such session.

        A turn that does not decrypt says so in the place of its text.
        """
        read: list[SessionTurn] = []
        spent, has_request = 0, False
        backwards = self._backwards()
        async for turn in backwards:
            read.append(turn)
            spent += min(self.cost_of_turn(turn), int(budget * SHORT_SHARE) + 1)
            has_request = has_request or turn.is_the_users
            if spent > budget and ((has_request and not turn.is_a_result) or len(read) >= MOST_SUMMARISED):
                break
        head = self._head
        if head is None:
            return None
        shown = fit(read, budget, self.cost_of_turn)
        items: list[Item] = []
        if len(shown) < head.turn_count:
            left = budget - sum(map(self.cost_of_turn, shown))
            items = await self._summary(read, {turn.number for turn in shown}, backwards, left)
        return View(head.agent_key, head.turn_count, head.last_turn_at, head.created_at, shown, items)

    async def _summary(
        self, read: Sequence[SessionTurn], shown: Collection[int], rest: AsyncIterator[SessionTurn], budget: int
    ) -> list[Item]:
        """Returns the summary of the turns that are not shown."""
        older = [turn for turn in read if turn.number not in shown]
        async for turn in rest:
            if len(older) >= MOST_SUMMARISED:
                break
            older.append(turn)
        if not older:  # the session was deleted while it was read
            return []
        first: SessionTurn | None = None if 1 in shown else older[-1]
        if 1 not in shown and older[-1].number != 1:
            rows = await self.connection.all(_PAGE, {"name": self.name, "before": 2})
            first = await self._opened(rows[0]) if rows else None
        written = Written()  # a model's summary of these turns, or of the most of them
        for row in await self.connection.all(_WRITTEN, {"name": self.name, "last": older[0].number}):
            with suppress(SealBroken):
                if self._seal is not None:
                    lines = self._seal.open("summary", row.payload, row.id, row.last_turn)
                    written = Written(row.last_turn, [Item(**line, by="llm") for line in lines])
        return chosen(older, first, budget, self.cost_of_line, written)

    async def _backwards(self) -> AsyncIterator[SessionTurn]:
        before: int | None = None
        while True:
            rows = await self.connection.all(_PAGE, {"name": self.name, "before": before})
            self._head = self._head or (rows[0] if rows else None)
            for row in rows:
                yield await self._opened(row)
            if len(rows) < PAGE:
                return
            before = rows[-1].number

    async def _opened(self, row: Record) -> SessionTurn:
        if self._seal is None:
            self._seal = await self.seal_of(self.connection, row.key_id)
        try:
            message = self._seal.open("turn", row.payload, row.id, row.number)
        except SealBroken:
            message = {"role": "unknown", "content": UNREADABLE}
        return SessionTurn(row.number, row.said_at, message)


def conversation(view: View) -> Quotes:
    """Returns the lines of a context that quote the turns and the summary of a session.

    The session must have been read with ``cost_of_turn`` and ``cost_of_line``, so that the lines fit the context.
    """
    lines = [conversation_line("earlier", item.line) for item in view.items]
    lines += [conversation_line(turn.role, turn.text) for turn in view.turns]
    return Quotes(lines, len(view.turns), view.left_out)


def cost_of_turn(turn: SessionTurn) -> int:
    """Returns the number of tokens of the line of a context that quotes a turn."""
    return count_tokens(conversation_line(turn.role, turn.text) + "\n")


def cost_of_line(line: str) -> int:
    """Returns the number of tokens of the line of a context that quotes a line of a summary."""
    return count_tokens(conversation_line("earlier", line) + "\n")


def _page() -> FastStatement[Record]:
    """Returns the statement for the newest PAGE turns of a session, or the newest before the turn ``before``."""
    before = parameter("before", Integer)
    of_session = and_(turns.c.user_sub == sessions.c.user_sub, turns.c.session_id == sessions.c.id)
    columns = ("id", "agent_key", "key_id", "turn_count", "last_turn_at", "created_at")
    statement = (
        select(*(sessions.c[name] for name in columns), turns.c.number, turns.c.said_at, turns.c.payload)
        .join(turns, of_session)
        .where(
            may_enter(),
            sessions.c.user_sub == USER_SUB,
            sessions.c.name == bindparam("name", type_=Text),
            or_(before.is_(None), turns.c.number < before),
        )
        .order_by(turns.c.number.desc())
        .limit(literal_column(str(PAGE)))
    )
    return FastStatement(statement)


def _newest_summary() -> FastStatement[Record]:
    """Returns the statement for a language model's newest summary of a session up to the turn ``last``.

    It has no row if the profile's setting is that rules write summaries.
    """
    summary = and_(session_summaries.c.user_sub == sessions.c.user_sub, session_summaries.c.session_id == sessions.c.id)
    profile = and_(profiles.c.user_sub == sessions.c.user_sub, profiles.c.agent_key == sessions.c.agent_key)
    columns = session_summaries.c.last_turn, session_summaries.c.payload
    statement = (
        select(sessions.c.id, sessions.c.key_id, *columns)
        .join(session_summaries, summary)
        .join(profiles, profile)
        .where(
            may_enter(),
            sessions.c.user_sub == USER_SUB,
            sessions.c.name == bindparam("name", type_=Text),
            profiles.c.session_summary == literal_column("'llm'"),
            session_summaries.c.last_turn <= bindparam("last", type_=Integer),
        )
        .order_by(session_summaries.c.last_turn.desc())
        .limit(literal_column("1"))
    )
    return FastStatement(statement)


_PAGE = _page()
_WRITTEN = _newest_summary()
