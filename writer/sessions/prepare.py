"""Prepares turns for storage: redacts, hashes and packs them, without asking the database."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from writer.blocks import as_chat, unread
from writer.memories import search_text, text_of_turn
from writer.messages import Turn
from writer.moment import Moment
from writer.privacy.redact import Redaction, redact
from writer.privacy.seal import Packed, pack
from writer.run import AgentKey, Strict

MOST_AT_ONCE = 200
"""Maximum number of turns of one request."""


class TurnTold(Turn):
    """One message, and when it was said."""

    time: Moment | None = Field(
        default=None, description="time of the turn; unset: now. Never earlier than the turn before it, nor in future"
    )


class TurnsTold(Strict):
    """New turns of a session, in their order. The first call for a name begins the session."""

    agent: AgentKey
    turns: Annotated[list[TurnTold], Field(min_length=1, max_length=MOST_AT_ONCE), BeforeValidator(as_chat)]

    @model_validator(mode="after")
    def _times_rise(self) -> Self:
        times = [turn.time for turn in self.turns if turn.time is not None]
        if times != sorted(times):
            raise ValueError("the turns' times fall: send them in the order in which they were said")
        return self


@dataclass(frozen=True, slots=True)
class PreparedTurn:
    """A turn, ready to be stored.

    Attributes:
        message: the message, redacted and packed.
        text: the text whose words are indexed; empty for a turn without content.
        said_at: the time of the turn; None: the time at which it is stored.
    """

    message: Packed
    text: str
    said_at: datetime | None


@dataclass(frozen=True, slots=True)
class PreparedTurns:
    """Turns, redacted and packed, ready to be stored under the user's key.

    Attributes:
        request_hash: sha256 of the request; only a keyed hash of it is stored.
    """

    agent_key: str
    turns: Sequence[PreparedTurn]
    redactions: list[Redaction]
    request_hash: bytes
    warnings: list[str] = field(default_factory=list)


def prepare_turns(turns: TurnsTold) -> PreparedTurns:
    """Returns the request's turns redacted and packed, ready for ``append_turns``.

    Call it before a connection is taken, because redacting a long text takes a while.
    """
    raw = turns.model_dump(mode="json", exclude_none=True)
    request_hash = hashlib.sha256(json.dumps(raw, sort_keys=True).encode()).digest()
    messages = [{"content": None, **{name: turn[name] for name in turn if name != "time"}} for turn in raw["turns"]]
    clean, redactions = redact(messages)
    prepared = [
        PreparedTurn(pack(message), search_text(text_of_turn(message)), turn.time)
        for message, turn in zip(clean, turns.turns, strict=True)
    ]
    warnings = unread([turn.content for turn in turns.turns])
    return PreparedTurns(turns.agent, prepared, redactions, request_hash, warnings)
