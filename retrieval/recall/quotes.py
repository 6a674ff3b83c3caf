"""Reads the lines that a context quotes: of the session, of the facts about the user, and of recalled memories.

Recalled turns take up to half of the session's share of the context, recalled facts and knowledge up to half of the
facts' share. A turn that is quoted in the conversation is not quoted again as a recalled one, nor is a recalled fact
quoted again among the facts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, cast
from uuid import UUID

from sqlalchemy import ColumnElement, case, func, literal_column, select

from retrieval.database.fast_path import FastConnection, FastStatement, Record
from retrieval.database.parameters import AGENT_KEY, USER_SUB, may_enter
from retrieval.errors import SealBroken
from retrieval.pages.memories import holds
from retrieval.recall.memory import FactSource, KnowledgeSource, Recalled, RecalledMemory, TurnSource
from retrieval.sealed import SealOf
from retrieval.search.profile_settings import ProfileSettings, default_share
from retrieval.sections.quotes import (
    CONVERSATION,
    KNOWN,
    RECALLED_KNOWN,
    RECALLED_TURNS,
    Quotes,
    QuotingSection,
    room_for,
)
from retrieval.sections.quoting import quoted, unquoted
from retrieval.sessions.read import SessionReader, conversation, cost_of_line, cost_of_turn
from retrieval.tables.columns import columns_of
from retrieval.tables.kinds import FactKind, Speaker
from retrieval.tables.memories import facts
from retrieval.tokens import count_tokens

MOST = 50
"""Largest number of facts that are read for one context."""


def line_of_fact(kind: FactKind, text: str, since: datetime, said_by: Speaker) -> str:
    """Returns a fact as one line: its text, quoted, the day since which it holds, and its speaker if not the user."""
    by = "" if said_by == "user" else f", said by the {said_by}"
    return f"[{kind}] {quoted(text)} (since {since.date().isoformat()}{by})"


_ORDER: dict[FactKind, int] = {"goal": 0, "preference": 1, "fact": 2, "event": 3}
_KINDS: list[tuple[ColumnElement[bool], ColumnElement[int]]] = [
    (facts.c.kind == literal_column(f"'{kind}'"), literal_column(str(place))) for kind, place in _ORDER.items()
]
_KNOWN: FastStatement[Record] = FastStatement(
    select(*columns_of(facts, "id kind words key_id said_by valid_from"), func.count().over().label("holding"))
    .where(may_enter(), facts.c.user_sub == USER_SUB, facts.c.agent_key == AGENT_KEY, *holds())
    .order_by(case(*_KINDS), facts.c.last_told_at.desc(), facts.c.id.desc())
    .limit(literal_column(str(MOST)))
)


RECALLED_SHARE = 1 / 2
"""Largest part of the session's share, and of the facts' share, of a context that recalled memories take."""


def line_of(memory: RecalledMemory) -> str:
    """Returns a recalled memory as one line of a context: its text, quoted, and its source."""
    source = memory.source
    if isinstance(source, TurnSource):
        day = source.said_at.date().isoformat()
        return f"[{unquoted(source.role)} in {quoted(source.session_id)}, {day}] {quoted(memory.text)}"
    if isinstance(source, FactSource):
        return line_of_fact(source.kind, memory.text, source.valid_from, source.said_by)
    return f"[knowledge] {quoted(memory.text)} ({quoted(source.entry_type)} of {quoted(source.category)})"


@dataclass(frozen=True, slots=True)
class QuoteReader:
    """Reads the quoted sections of one context of one profile.

    Attributes:
        settings: the profile's settings, with the shares of a context; None: there is no profile yet, and defaults are
            used.
        session: the backend's name of the session to quote; None: none is quoted.
        facts: true to quote facts that were not recalled, too.
        recalled: memories recalled for the query; empty if the request wants no recall.
        seal_of: function that returns the user's seal for a key's id.
    """

    connection: FastConnection
    agent_key: str
    settings: ProfileSettings | None
    token_budget: int
    session: str | None
    facts: bool
    recalled: Recalled
    seal_of: SealOf

    async def sections(self) -> list[QuotingSection]:
        """Returns the context's sections about the session and about the user."""
        return [
            QuotingSection("session", (CONVERSATION, RECALLED_TURNS), await self._session()),
            QuotingSection("user", (KNOWN, RECALLED_KNOWN), await self._facts()),
        ]

    async def _session(self) -> Quotes:
        share = self._share("session_share")
        turns, fitting = self._recalled(RECALLED_TURNS, share, TurnSource)
        view = None
        if self.session is not None:
            room = self._room(CONVERSATION, share, RECALLED_TURNS, fitting)
            reader = SessionReader(self.connection, self.session, self.seal_of, cost_of_turn, cost_of_line)
            view = await reader.view(room)
        # no such session, or another agent's
        if self.session is None or view is None or view.agent_key != self.agent_key:
            return _with(Quotes([]), fitting, len(turns) - len(fitting))
        shown = {(self.session, turn.number) for turn in view.turns}
        besides = [each for each in fitting if _turn_key(each) not in shown]
        elsewhere = sum(_turn_key(each)[0] != self.session for each in turns)
        said = replace(conversation(view), sessions=[self.session])
        return _with(said, besides, view.left_out + elsewhere - len(besides))

    async def _facts(self) -> Quotes:
        """Returns the facts that fit, without those recalled; facts that do not decrypt count as left out."""
        share = self._share("facts_share")
        memories, fitting = self._recalled(RECALLED_KNOWN, share, FactSource, KnowledgeSource)
        room = self._room(KNOWN, share, RECALLED_KNOWN, fitting)
        recalled = {each.source.fact_id for each in fitting if isinstance(each.source, FactSource)}
        rows: Sequence[Record] = ()
        if self.facts and room and self.settings is not None and self.settings.has_facts:
            rows = await self.connection.all(_KNOWN, {"agent_key": self.agent_key})
        seal = await self.seal_of(self.connection, rows[0].key_id) if rows else None
        lines, ids = list[str](), list[UUID]()
        for row in rows:
            if seal is None or row.id in recalled:
                continue
            try:
                text = seal.open("fact", row.words, row.id)["text"]
            except SealBroken:
                continue
            line = line_of_fact(row.kind, text, row.valid_from, row.said_by)
            room -= count_tokens(line + "\n")
            if room < 0:
                break
            lines.append(line)
            ids.append(row.id)
        left_out = rows[0].holding - len(recalled) - len(lines) if rows else 0
        # the facts among the memories are counted among those that hold, if these were read
        counted = [each for each in memories if not rows or isinstance(each.source, KnowledgeSource)]
        left_out += sum(each not in fitting for each in counted)
        return _with(Quotes(lines, len(lines), ids=ids), fitting, left_out)

    def _share(self, name: Literal["session_share", "facts_share"]) -> float:
        return default_share(name) if self.settings is None else float(getattr(self.settings, name))

    def _recalled(self, heading: str, share: float, *kinds: type) -> tuple[list[RecalledMemory], list[RecalledMemory]]:
        """Returns the recalled memories of these kinds, and those of them that fit; others are passed over."""
        memories = [each for each in self.recalled.memories if isinstance(each.source, kinds)]
        room, fitting = room_for(heading, self.token_budget, share * RECALLED_SHARE), list[RecalledMemory]()
        for memory in memories:
            if (cost := _cost(memory)) <= room:
                fitting.append(memory)
                room -= cost
        return memories, fitting

    def _room(self, heading: str, share: float, recalled_heading: str, recalled: Sequence[RecalledMemory]) -> int:
        """Returns the number of tokens left for the lines below a heading, beside the recalled lines below theirs."""
        taken = count_tokens(recalled_heading) + sum(map(_cost, recalled)) if recalled else 0
        return max(0, room_for(heading, self.token_budget, share) - taken)


def _with(quotes: Quotes, recalled: Sequence[RecalledMemory], left_out: int) -> Quotes:
    lines = [line_of(each) for each in recalled]
    found = [each.memory_id for each in recalled if each.memory_id is not None]
    sessions = [each.source.session_id for each in recalled if isinstance(each.source, TurnSource)]
    return replace(
        quotes,
        recalled=lines,
        shown=quotes.shown + len(lines),
        left_out=left_out,
        ids=[*quotes.ids, *found],
        sessions=[*quotes.sessions, *sessions],
    )


def _cost(memory: RecalledMemory) -> int:
    return count_tokens(line_of(memory) + "\n")


def _turn_key(turn: RecalledMemory) -> tuple[str, int]:
    """Returns the name of a recalled turn's session and the turn's number there."""
    source = cast("TurnSource", turn.source)
    return source.session_id, source.number
