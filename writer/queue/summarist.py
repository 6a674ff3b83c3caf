"""Has a language model summarise a session's older turns, if the profile's settings ask for it, and checks the answer.

Each summary is a new row; earlier summaries stay as they are. If the model is down, its answer is useless, or the
day's tokens are used up, no summary is added, and retrievals show the turns shortened by the rules of
``retrieval.sessions.summary``.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any
from uuid import UUID

from pydantic import Field, JsonValue, ValidationError
from sqlalchemy import and_, func, select
from sqlalchemy.dialects.postgresql import insert

from retrieval.database.database import Database
from retrieval.database.rows import Rows
from retrieval.errors import ModelError
from retrieval.ports import Model
from retrieval.sessions.messages import SessionTurn
from retrieval.sessions.summary import LONGEST, ItemKind
from retrieval.tables.kinds import SummaryChoice
from retrieval.tables.profiles import profiles
from retrieval.tables.sessions import session_summaries, sessions
from retrieval.tokens import count_tokens
from writer.analysis.error_output import beginning
from writer.privacy.keys import Keyring
from writer.procedures.llm.answers import storable
from writer.procedures.llm.injection import follows_injection, injected_words
from writer.procedures.llm.learners import FALLBACKS
from writer.procedures.llm.prompts import SUMMARISE
from writer.procedures.llm.run_digest import DigestTurn, RunDigest
from writer.procedures.llm.token_budget import Account
from writer.profiles import Profile
from writer.run import Strict
from writer.sessions.lock import turns_after, turns_in

LEAST_TOKENS = 1_000
"""Least number of tokens of the turns after the last summary for which another summary is made."""
MOST_TOKENS = 6_000
"""Maximum tokens of turns that one summary covers; further turns wait for the next summary."""
MOST_TURNS = 200
"""Maximum number of turns that one summary covers."""
TURN_CHARS = 2_000
"""Maximum characters of a turn that the model reads."""
MOST_LINES = 40
"""Maximum number of lines of a summary."""
VERBATIM: tuple[ItemKind, ...] = ("command", "value")
"""Kinds of summary lines whose text must occur word for word in the turn that the line is about."""


class Line(Strict):
    """One thing that was said in a turn."""

    turn: int = Field(ge=1)
    kind: ItemKind
    text: str = Field(min_length=1, max_length=LONGEST)


class SessionSummary(Strict):
    """The language model's answer: a summary of all turns so far, told in the order of the turns."""

    lines: list[Line] = Field(max_length=MOST_LINES)


@dataclass(frozen=True, slots=True)
class Summarist:
    """Has sessions summarised by a language model, within each profile's token budget."""

    database: Database
    keyring: Keyring
    model: Model
    account: Account

    async def summarise(self, profile: Profile, session_id: UUID) -> bool:
        """Adds a summary of the session's turns since the last summary, if its profile wants the model's summaries.

        Adds nothing if these turns are fewer than MOST_TURNS and have fewer than LEAST_TOKENS, or if the model's answer
        cannot be used. Turns that do not decrypt are left out. Returns whether the model was to be asked.

        Raises:
            UserErased: the user was erased meanwhile.
            SealBroken: none of the turns decrypts, or the summary before them does not.
            DatabaseUnavailable: nothing was added.
        """
        async with self.database.as_user(profile.user_sub, profile.seen_at) as connection:
            newest = (await connection.execute(newest_summary(profile, session_id))).one_or_none()
            words = await self.keyring.find(connection, profile.user_sub)
            if newest is None or words is None:
                return False
            last = newest.last_turn or 0
            wanted = turns_after(profile.user_sub, session_id, last).limit(MOST_TURNS)
            rows = (await connection.execute(wanted)).all()
            turns = await asyncio.to_thread(turns_in, words, session_id, rows)
            before = words.open("summary", newest.payload, session_id, last) if last else []
        costs = [count_tokens(_beginning(turn)) for turn in turns]
        if sum(costs) < LEAST_TOKENS and len(rows) < MOST_TURNS:
            return False
        read = max(1, sum(total <= MOST_TOKENS for total in accumulate(costs)))
        lines = await self._lines(profile, before, turns[:read])
        if not lines:
            return True
        last = turns[read - 1].number
        async with self.database.as_user(profile.user_sub, profile.seen_at) as connection:
            words = await self.keyring.find(connection, profile.user_sub)
            if words is not None:
                payload = words.seal("summary", lines, session_id, last)
                mine = sessions.c.user_sub == profile.user_sub, sessions.c.id == session_id
                there = select(sessions.c.id).where(*mine).with_for_update(key_share=True, read=True)
                if await connection.scalar(there) is not None:
                    summary = {"user_sub": profile.user_sub, "session_id": session_id, "last_turn": last}
                    row = insert(session_summaries).values(**summary, payload=payload, created_at=func.now())
                    await connection.execute(row.on_conflict_do_nothing())
        return True

    async def _lines(
        self, profile: Profile, before: Sequence[Mapping[str, Any]], turns: Sequence[SessionTurn]
    ) -> list[dict[str, object]]:
        """Asks the model to add turns to the lines of a summary; returns the lines that may be stored, in their order.

        A line is dropped if it names a turn that the model did not read, or quotes a command or value that does not
        stand in that turn. Returns no lines if the model failed, or if the answer follows an injected instruction.
        """
        model = self.account.model(self.model, profile, "summarise")
        shown: dict[str, JsonValue] = {
            "before": [{"turn": line["number"], "kind": line["kind"], "text": line["text"]} for line in before],
            "turns": [{"turn": turn.number, "role": turn.role, "said": _beginning(turn)} for turn in turns],
        }
        try:
            answer = (await model.ask(SUMMARISE, shown, SessionSummary)).answer
        except ModelError as error:
            FALLBACKS.labels("summarise", error.why).inc()
            return []
        read = [DigestTurn("user" if turn.is_the_users else turn.role, _beginning(turn)) for turn in turns]
        injected = injected_words(RunDigest("", "", [], [], read), [str(line["text"]) for line in before])
        orders = [line.text for line in answer.lines if line.kind in {"asked", "decided", "command"}]
        if follows_injection(injected, orders, [line.text for line in answer.lines]):
            FALLBACKS.labels("summarise", "planted").inc()
            return []
        try:
            clean = SessionSummary.model_validate(storable(answer.model_dump(mode="json")))
        except ValidationError:  # a text is empty now that what must not be stored is taken out
            FALLBACKS.labels("summarise", "empty").inc()
            return []
        roles = {line["number"]: str(line["role"]) for line in before}
        roles |= {turn.number: turn.role for turn in turns}
        texts = {turn.number: _in_line(turn.text) for turn in turns}
        for line in before:
            texts[line["number"]] = f"{texts.get(line['number'], '')}\n{_in_line(str(line['text']))}"
        kept: list[dict[str, object]] = [
            {"number": line.turn, "kind": line.kind, "role": roles[line.turn], "text": line.text}
            for line in clean.lines
            if line.turn in roles and (line.kind not in VERBATIM or _in_line(line.text) in texts[line.turn])
        ]
        return sorted(kept, key=lambda line: int(str(line["number"])))


def _beginning(turn: SessionTurn) -> str:
    return beginning(turn.text, TURN_CHARS)


def _in_line(text: str) -> str:
    return " ".join(text.split())


def newest_summary(profile: Profile, session_id: UUID) -> Rows:
    """Returns a statement that selects the session's newest summary: its last turn's number, its encrypted lines.

    Both are NULL for a session without a summary. No row is selected unless the session's profile wants summaries by a
    language model.
    """
    summary = and_(session_summaries.c.user_sub == sessions.c.user_sub, session_summaries.c.session_id == sessions.c.id)
    owner = and_(profiles.c.user_sub == sessions.c.user_sub, profiles.c.agent_key == sessions.c.agent_key)
    wanted: SummaryChoice = "llm"
    return (
        select(session_summaries.c.last_turn, session_summaries.c.payload)
        .select_from(sessions.join(profiles, owner).outerjoin(session_summaries, summary))
        .where(
            sessions.c.user_sub == profile.user_sub,
            sessions.c.id == session_id,
            profiles.c.session_summary == wanted,
        )
        .order_by(session_summaries.c.last_turn.desc())
        .limit(1)
    )
