"""Turns made ready to be stored: validated, redacted and packed, before anybody asks the database."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from pydantic import ConfigDict, Field, GetCoreSchemaHandler, model_validator
from pydantic_core import CoreSchema, core_schema

from writer.memories import text_of_turn
from writer.moment import Moment
from writer.privacy.redact import Redaction, redact
from writer.privacy.seal import Packed, pack
from writer.run import AgentKey, Strict, Turn

MOST_AT_ONCE = 200


class TurnTold(Turn):
    """One message, and when it was said."""

    time: Moment | None = Field(
        default=None, description="when it was said; unset: now. Never earlier than the turn before it, nor in future"
    )


class TurnsTold(Strict):
    """What was said since the session was last heard of, in its order. The first call for a name begins the session."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "agent": "db-operator",
                    "turns": [
                        {"role": "user", "content": "Add a last_name column to the users table, please."},
                        {
                            "role": "assistant",
                            "tool_calls": [
                                {
                                    "id": "c1",
                                    "function": {
                                        "name": "sql",
                                        "arguments": '{"statement": "ALTER TABLE users ADD COLUMN last_name text;"}',
                                    },
                                }
                            ],
                        },
                        {"role": "tool", "tool_call_id": "c1", "content": "ALTER TABLE"},
                    ],
                }
            ]
        },
    )

    agent: AgentKey
    turns: list[TurnTold] = Field(min_length=1, max_length=MOST_AT_ONCE)

    @model_validator(mode="after")
    def _times_rise(self) -> Self:
        times = [turn.time for turn in self.turns if turn.time is not None]
        if times != sorted(times):
            raise ValueError("the turns' times fall: send them in the order in which they were said")
        return self


@dataclass(frozen=True, slots=True)
class DraftedTurn:
    """A turn made ready: its message without secrets, packed, its bytes as JSON, its text, and its time."""

    message: Packed
    size: int
    text: str
    said_at: datetime | None


@dataclass(frozen=True, slots=True)
class TurnsDraft:
    """Turns made ready: redacted and packed, but for the user's key.

    Pydantic makes it of their JSON, so that a process of its own can do that for large ones.

    Attributes:
        request_hash: sha256 of the call as it was sent, to be keyed before it is stored.
    """

    agent_key: str
    turns: Sequence[DraftedTurn]
    redactions: list[Redaction]
    request_hash: bytes

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Returns the schema of turns, whose outcome is the draft; a draft passes as it is."""
        told = handler.generate_schema(TurnsTold)
        return core_schema.no_info_wrap_validator_function(_drafted, told)


def _drafted(given: object, validated: Callable[[object], TurnsTold]) -> TurnsDraft:
    return given if isinstance(given, TurnsDraft) else draft_of_turns(validated(given))


def draft_of_turns(told: TurnsTold) -> TurnsDraft:
    """Returns the turns made ready, which takes the longer the more there is to redact."""
    raw = told.model_dump(mode="json", exclude_none=True)
    request_hash = hashlib.sha256(json.dumps(raw, sort_keys=True).encode()).digest()
    messages = [{"content": None, **{name: turn[name] for name in turn if name != "time"}} for turn in raw["turns"]]
    clean, redactions = redact(messages)
    drafted = [
        DraftedTurn(pack(message), len(json.dumps(message)), text_of_turn(message), turn.time)
        for message, turn in zip(clean, told.turns, strict=True)
    ]
    return TurnsDraft(told.agent, drafted, redactions, request_hash)
