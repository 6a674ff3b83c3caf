"""An entry of knowledge before it is stored: validated and redacted."""

import hashlib
import json
from typing import Annotated, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator

from retrieval.text import folded
from writer.memories import MAX_CHARS
from writer.privacy.names import nameable
from writer.privacy.objects import without_titled_secrets
from writer.privacy.redact import without_secrets
from writer.privacy.words import Words
from writer.run import AgentKey, Strict
from writer.storable import line

_Name = line(100, blank=False)
_Text = Annotated[line(MAX_CHARS, blank=False), AfterValidator(without_secrets)]  # type: ignore[valid-type]
EntryTitle = Annotated[line(200, blank=False), AfterValidator(without_secrets)]  # type: ignore[valid-type]


def hash_of_titled(words: Words, category: str, entry_type: str, title: str) -> bytes:
    """Returns the keyed hash by which a user's entry is found by category, type and title, whatever its text is."""
    return words.hash_of_knowledge(category, entry_type, "title", title)


class KnowledgeWritten(Strict):
    """An entry of knowledge, written by hand."""

    agent: AgentKey
    category: _Name = Field(description="the topic of the entry")  # type: ignore[valid-type]
    type: _Name = Field(default="fact", description="the kind of entry: a rule, a term, …")  # type: ignore[valid-type]
    title: EntryTitle | None = Field(  # type: ignore[valid-type]
        default=None,
        description="the title; an entry of the same category, type and title is updated, and without a title, one of "
        "the same text",
    )
    text: _Text  # type: ignore[valid-type]

    @model_validator(mode="after")
    def _without_titled_secrets(self) -> Self:
        for name in (self.title or "", self.category):
            self.text = without_titled_secrets(name, self.text)
        return self

    @property
    def texts(self) -> dict[str, str]:
        """Returns the title and the text of the entry; the title is empty if the entry has none."""
        return {"title": self.title or "", "text": self.text}

    def keyed_hash(self, words: Words) -> bytes:
        """Returns the keyed hash by which a user's entry is found when it is written again; it reveals no word."""
        return words.hash_of_knowledge(*self._identity())

    def shared_hash(self) -> bytes:
        """Returns the hash by which a shared entry is found when it is written again; it needs no key."""
        return hashlib.sha256(json.dumps([folded(part) for part in self._identity()]).encode()).digest()

    def _identity(self) -> tuple[str, ...]:
        return self.category, self.type, *(("title", self.title) if self.title else ("text", self.text))

    def check_names(self) -> str:
        """Checks the entry's names, and returns the agent's name.

        Raises:
            SecretInName: the agent's name, the category or the type looks like a secret.
        """
        nameable(self.category, "a category's")
        nameable(self.type, "a type's")
        return nameable(self.agent)


def reason_of(error: Exception) -> str:
    """Returns the reason why an entry of knowledge is invalid, without quoting the entry."""
    if not isinstance(error, ValidationError):
        return str(error)
    errors = error.errors(include_input=False, include_url=False, include_context=False)
    return ", ".join(f"{each['loc'][0] if each['loc'] else 'it'}: {each['msg']}" for each in errors)
