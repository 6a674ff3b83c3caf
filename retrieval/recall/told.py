"""What a context tells of the session, of the user, and of what was recalled for the query, each within its share.

What was recalled of turns takes up to half of the session's share, what was recalled of facts and knowledge up to half
of the user's. Nothing is told twice: no turn that the conversation shows, and no fact that was recalled.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast
from uuid import UUID

from retrieval.database.fast_path import FastConnection
from retrieval.facts.known import known_of_user, line_of_fact
from retrieval.recall.memory import FactSource, KnowledgeSource, Memory, Recalled, TurnSource
from retrieval.sealed import UserSeal
from retrieval.search.profile_settings import ProfileSettings, default_share
from retrieval.sections.context import (
    CONVERSATION,
    KNOWN,
    RECALLED_KNOWN,
    RECALLED_TURNS,
    PartName,
    Quoted,
    count_tokens,
    room_for,
)
from retrieval.sections.quoting import quoted, unquoted
from retrieval.sessions.read import Reading, View, conversation, cost_of_line, cost_of_turn

RECALLED_SHARE = 1 / 2
"""Of the session's and of the user's share, at most."""


def line_of(memory: Memory) -> str:
    """Returns the memory as one line: what it says as data, and where it comes from."""
    source = memory.source
    if isinstance(source, TurnSource):
        day = source.said_at.date().isoformat()
        return f"[{unquoted(source.role)} in {quoted(source.session_id)}, {day}] {quoted(memory.text)}"
    if isinstance(source, FactSource):
        return line_of_fact(source.kind, memory.text, source.valid_from, source.said_by)
    return f"[knowledge] {quoted(memory.text)} ({quoted(source.entry_type)} of {quoted(source.category)})"


@dataclass(frozen=True, slots=True)
class Telling:
    """Tells one context of one profile of the session and the user.

    Attributes:
        settings: of the profile, with the shares; None: there is none yet, and those of a new one count.
        session: by its backend's name; None: of none.
        facts: whether those are told that have nothing to do with the query.
        recalled: for the query; nothing where that was not asked for.
        seal_of: finds what opens what was sealed with that key.
    """

    connection: FastConnection
    agent_key: str
    settings: ProfileSettings | None
    token_budget: int
    session: str | None
    facts: bool
    recalled: Recalled
    seal_of: Callable[[FastConnection, UUID], Awaitable[UserSeal]]

    async def quotes(self) -> dict[PartName, Quoted]:
        """Returns what the context says of the session and of the user.

        Raises:
            SealBroken: a turn or a fact was sealed with another key, or was changed.
        """
        return {"session": await self._session(), "user": await self._user()}

    async def _session(self) -> Quoted:
        share = self._share("session_share")
        turns = self._recalled(TurnSource)
        fitting = self._fitting(turns, RECALLED_TURNS, share)
        view = await self._view(self._room(CONVERSATION, share, RECALLED_TURNS, fitting))
        if view is None:
            return _with(Quoted([]), fitting, len(turns) - len(fitting))
        shown = {(self.session, turn.number) for turn in view.turns}
        besides = [each for each in fitting if _place(each) not in shown]
        here = [each for each in turns if _place(each)[0] == self.session]
        left_out = view.left_out - sum(each in here for each in besides)
        return _with(conversation(view), besides, left_out + sum(each not in here + besides for each in turns))

    async def _view(self, room: int) -> View | None:
        """Returns the session; None where none was named, there is none, or it is another agent's."""
        if self.session is None:
            return None
        view = await Reading(self.connection, self.session, self.seal_of, cost_of_turn, cost_of_line).view(room)
        return None if view is None or view.agent_key != self.agent_key else view

    async def _user(self) -> Quoted:
        share = self._share("facts_share")
        known = self._recalled(FactSource, KnowledgeSource)
        fitting = self._fitting(known, RECALLED_KNOWN, share)
        ids = [each.source.fact_id for each in fitting if isinstance(each.source, FactSource)]
        facts = await self._facts(self._room(KNOWN, share, RECALLED_KNOWN, fitting), ids)
        entries = [each for each in known if isinstance(each.source, KnowledgeSource)]
        left_out = (facts.left_out if facts else 0) + sum(each not in fitting for each in entries)
        return _with(facts or Quoted([]), fitting, left_out)

    async def _facts(self, room: int, told: Collection[UUID]) -> Quoted | None:
        """Returns what the context says of the user besides these facts; None: nothing."""
        if not (self.facts and room and self.settings is not None and self.settings.has_facts):
            return None
        return await known_of_user(self.connection, self.agent_key, room, self.seal_of, told)

    def _share(self, name: Literal["session_share", "facts_share"]) -> float:
        return default_share(name) if self.settings is None else float(getattr(self.settings, name))

    def _recalled(self, *kinds: type) -> list[Memory]:
        return [each for each in self.recalled.memories if isinstance(each.source, kinds)]

    def _room(self, heading: str, share: float, above: str, recalled: Sequence[Memory]) -> int:
        """Returns the tokens that the lines below a heading may have beside what was recalled, below its own."""
        taken = count_tokens(above) + sum(map(_cost, recalled)) if recalled else 0
        return max(0, room_for(heading, self.token_budget, share) - taken)

    def _fitting(self, memories: Sequence[Memory], heading: str, share: float) -> list[Memory]:
        """Returns those that fit into their part of a share; a shorter one may follow one that does not."""
        room, fitting = room_for(heading, self.token_budget, share * RECALLED_SHARE), list[Memory]()
        for memory in memories:
            if (cost := _cost(memory)) <= room:
                fitting.append(memory)
                room -= cost
        return fitting


def _with(told: Quoted, recalled: Sequence[Memory], left_out: int) -> Quoted:
    lines = [line_of(each) for each in recalled]
    return replace(told, recalled=lines, shown=told.shown + len(lines), left_out=left_out)


def _cost(memory: Memory) -> int:
    return count_tokens(line_of(memory) + "\n")


def _place(turn: Memory) -> tuple[str, int]:
    """Returns the session of a recalled turn, by its name, and its number there."""
    source = cast("TurnSource", turn.source)
    return source.session_id, source.number
