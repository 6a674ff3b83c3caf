"""A fact that somebody writes down: checked, redacted, and told like any other."""

from datetime import date
from typing import Annotated, Self
from uuid import UUID

from pydantic import AfterValidator, ConfigDict, Field, model_validator
from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert as upsert

from retrieval.database.database import Database
from retrieval.tables.kinds import FactCategory, FactKind, Speaker
from retrieval.tables.profiles import profiles
from writer.author import Author
from writer.facts.extract import Told, category_of, unit_of
from writer.facts.store import Provenance, tell
from writer.facts.times import Days
from writer.moment import Moment
from writer.privacy.keys import Keyring
from writer.privacy.names import nameable
from writer.privacy.redact import redact_text
from writer.privacy.words import Words
from writer.profiles import lock_profile
from writer.run import AgentKey, Strict, line


def _clean(text: str) -> str:
    return redact_text(text)[0]


_Text = Annotated[line(2_000, blank=False), AfterValidator(_clean)]  # type: ignore[valid-type]
_Word = Annotated[line(200, blank=False), AfterValidator(_clean)]  # type: ignore[valid-type]


class FactWritten(Strict):
    """What is known of the user, by hand."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "agent": "coach",
                    "kind": "goal",
                    "text": "I want to save 500 EUR a month",
                    "attribute": "save",
                    "value": "500",
                    "unit": "EUR",
                    "category": "money",
                }
            ]
        },
    )

    agent: AgentKey
    kind: FactKind
    text: _Text = Field(description="the fact in words")  # type: ignore[valid-type]
    subject: _Word = Field(default="user", description="whom or what it is about")  # type: ignore[valid-type]
    attribute: _Word | None = Field(default=None, description="what of it; of a goal the metric")  # type: ignore[valid-type]
    value: _Word | None = Field(  # type: ignore[valid-type]
        default=None,
        description="with an attribute: of one kind, subject and attribute one value holds at a time; a newer one closes "
        "the older",
    )
    unit: _Word | None = None  # type: ignore[valid-type]
    category: FactCategory | None = Field(default=None, description="unset: by the words of the text")
    about_from: date | None = Field(default=None, description="first day that it speaks of")
    about_to: date | None = Field(default=None, description="last day; unset: the first")
    said_by: Speaker = "user"
    valid_from: Moment | None = Field(default=None, description="since when it holds; unset: now")
    valid_to: Moment | None = Field(default=None, description="until when; unset: it holds")

    @model_validator(mode="after")
    def _times_rise(self) -> Self:
        if self.valid_to is not None and (self.valid_from is None or self.valid_to <= self.valid_from):
            raise ValueError("a fact ends after it began: valid_to must come with an earlier valid_from")
        if self.about_to is not None and (self.about_from is None or self.about_to < self.about_from):
            raise ValueError("about_to must come with an earlier about_from")
        return self

    def told(self) -> Told:
        """Returns the fact as a turn would tell it."""
        about = None if self.about_from is None else Days(self.about_from, self.about_to or self.about_from)
        return Told(
            self.kind,
            self.text,
            self.subject,
            self.attribute or "",
            self.value or "",
            unit_of(self.unit or ""),
            self.category or category_of(self.text),
            about,
            single=self.attribute is not None and self.value is not None,
        )


async def write_fact(database: Database, keyring: Keyring, written: FactWritten, author: Author) -> UUID:
    """Stores the fact and returns its id, or that of the one that says the same and held then.

    Raises:
        SecretInName: the agent's name looks like a secret.
        UserErased: the user was erased after the author was authorised.
        DatabaseUnavailable: nothing was stored, or nobody can say whether it was; to repeat it counts it once more.
    """
    agent_key = nameable(written.agent)
    async with database.as_user(author.user_sub, author.authorised_at) as connection:
        words = Words(author.user_sub, await keyring.find_or_make(connection, author.user_sub))
        profile = {"user_sub": author.user_sub, "agent_key": agent_key}
        await connection.execute(upsert(profiles).values(profile).on_conflict_do_nothing())
        await lock_profile(connection, author.user_sub, agent_key)
        valid_from = written.valid_from or (await connection.execute(select(func.now()))).scalar_one()
        source = Provenance(agent_key, author.actor, "hand", valid_from, written.valid_to, written.said_by)
        return await tell(connection, words, written.told(), source)
