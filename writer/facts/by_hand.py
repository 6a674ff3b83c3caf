"""Facts written by a person or a tool: validated, redacted, and stored like extracted ones."""

import re
from collections import Counter
from datetime import date
from typing import Annotated, Self
from uuid import UUID

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from sqlalchemy import func, select

from retrieval.database.database import Database
from retrieval.tables.kinds import FactKind, Speaker
from writer.author import Author
from writer.facts.draft import FactDraft, category_of
from writer.facts.goals import unit_of
from writer.facts.store import Provenance, store_facts
from writer.facts.times import Days
from writer.moment import Moment
from writer.privacy.finds import mark
from writer.privacy.keys import Keyring
from writer.privacy.names import nameable
from writer.privacy.redact import redact, redact_text, without_secrets
from writer.profiles import lock_profile, open_for_writing
from writer.run import AgentKey, Strict
from writer.storable import line


def as_written(value: object) -> object:
    """Returns a number as text, because callers and models send both; any other value is returned unchanged."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


_Word = Annotated[line(200, blank=False), AfterValidator(without_secrets)]  # type: ignore[valid-type]
_Value = Annotated[_Word, BeforeValidator(as_written, json_schema_input_type=str | float)]  # type: ignore[valid-type]


class FactWritten(Strict):
    """A fact about the user, written by hand."""

    agent: AgentKey
    kind: FactKind
    text: line(2_000, blank=False) = Field(description="the fact in words")  # type: ignore[valid-type]
    subject: _Word = Field(default="user", description="the person or thing that the fact is about")  # type: ignore[valid-type]
    attribute: _Word | None = Field(default=None, description="the attribute of the subject; the metric of a goal")  # type: ignore[valid-type]
    value: _Value | None = Field(
        default=None,
        description="the value of the attribute, a number or a text, kept as text; one value of a kind, subject and "
        "attribute holds at a time, and a newer one closes the older",
    )
    unit: _Word | None = None  # type: ignore[valid-type]
    category: line(100, blank=False) | None = Field(  # type: ignore[valid-type]
        default=None, description="the category, in any word; if unset, by the words of the text"
    )
    about_from: date | None = Field(default=None, description="first day of the event")
    about_to: date | None = Field(default=None, description="last day of the event; if unset, the first")
    said_by: Speaker = "user"
    valid_from: Moment | None = Field(default=None, description="time since which the fact holds; if unset, now")
    valid_to: Moment | None = Field(default=None, description="time until which the fact holds; if unset, open")

    @model_validator(mode="after")
    def _without_secrets(self) -> Self:
        """Redacts the text, and a value that the attribute, the subject or the text tells to be a secret."""
        said, value = self.text, self.value
        self.text, found = redact_text(said)
        if value is None:
            return self
        clean = value
        for name in (self.attribute or self.subject, f"{self.subject} {self.attribute}"):
            clean = redact({"name": name, "value": clean})[0]["value"]
        alone = re.compile(rf"(?<![\w@.]){re.escape(value)}(?![\w@])")
        if clean == value and len(alone.findall(self.text)) < len(alone.findall(said)):
            clean = mark(found.most_common(1)[0][0], Counter())
        if clean != value:
            self.value, self.text = clean, alone.sub(lambda _: clean, self.text)
        return self

    @model_validator(mode="after")
    def _times_rise(self) -> Self:
        if self.valid_to is not None and (self.valid_from is None or self.valid_to <= self.valid_from):
            raise ValueError("a fact ends after it began: valid_to must come with an earlier valid_from")
        if self.about_to is not None and (self.about_from is None or self.about_to < self.about_from):
            raise ValueError("about_to must come with an earlier about_from")
        return self

    def draft(self) -> FactDraft:
        """Returns the fact in the form in which extracted facts are stored."""
        about = None if self.about_from is None else Days(self.about_from, self.about_to or self.about_from)
        return FactDraft(
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
    """Stores the fact and returns its id; if an equal fact held at that time, counts the repetition and returns its id.

    A repetition that ends earlier than the equal fact ends it then, unless that was told again since.

    Raises:
        MemoryOff: the user switched off writing for this agent.
        SecretInName: the agent's name or the category looks like a secret.
        DatabaseUnavailable: the fact may or may not be stored; a second call may count it once more.
    """
    agent_key = nameable(written.agent)
    nameable(written.category or "", "a category's")
    async with database.as_user(author.user_sub, author.authorised_at) as connection:
        words = await keyring.find_or_make(connection, author.user_sub)
        await lock_profile(connection, author.user_sub, agent_key)
        await open_for_writing(connection, author.user_sub, agent_key)
        valid_from = written.valid_from or (await connection.execute(select(func.now()))).scalar_one()
        source = Provenance(agent_key, author.actor, "hand", valid_from, written.valid_to, written.said_by)
        (fact_id,) = await store_facts(connection, words, source.agent_key, [(written.draft(), source)])
        return fact_id
