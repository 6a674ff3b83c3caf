"""An entry of knowledge as it is written: checked and redacted."""

import hashlib
import json
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field, ValidationError

from retrieval.text import folded
from writer.memories import MAX_CHARS
from writer.privacy.names import nameable
from writer.privacy.redact import redact_text
from writer.privacy.words import Words
from writer.run import AgentKey, Strict, line


def _clean(text: str) -> str:
    return redact_text(text)[0]


_Name = line(100, blank=False)
_Text = Annotated[line(MAX_CHARS, blank=False), AfterValidator(_clean)]  # type: ignore[valid-type]
EntryTitle = Annotated[line(200, blank=False), AfterValidator(_clean)]  # type: ignore[valid-type]


def hash_of_titled(words: Words, category: str, entry_type: str, title: str) -> bytes:
    """Returns what stands for a user's entry with that title, whatever its text is."""
    return words.hash_of_knowledge(category, entry_type, *_by_title(title))


def _by_title(title: str) -> tuple[str, str]:
    return "title", title


class KnowledgeWritten(Strict):
    """An entry of knowledge, by hand."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "agent": "coach",
                    "category": "banking",
                    "type": "rule",
                    "title": "Overnight rate",
                    "text": "Savings earn 2.1 percent.",
                }
            ]
        },
    )

    agent: AgentKey
    category: _Name = Field(description="what it is about")  # type: ignore[valid-type]
    type: _Name = Field(default="fact", description="what kind of entry it is: a rule, a term, …")  # type: ignore[valid-type]
    title: EntryTitle | None = Field(  # type: ignore[valid-type]
        default=None,
        description="an entry of the same category, type and title is updated; without one, of the same text",
    )
    text: _Text  # type: ignore[valid-type]

    @property
    def said(self) -> dict[str, str]:
        """What it says."""
        return {"title": self.title or "", "text": self.text}

    def said_hash(self, words: Words) -> bytes:
        """Returns what stands for a user's entry, whatever its text is if it has a title; it tells nobody a word."""
        return words.hash_of_knowledge(*self._known_by())

    def shared_hash(self) -> bytes:
        """Returns what stands for a shared entry, which is no secret."""
        return hashlib.sha256(json.dumps([folded(part) for part in self._known_by()]).encode()).digest()

    def _known_by(self) -> tuple[str, ...]:
        return self.category, self.type, *(_by_title(self.title) if self.title else ("text", self.text))

    def check_names(self) -> str:
        """Returns the agent's name.

        Raises:
            SecretInName: it, the category or the type looks like a secret.
        """
        nameable(self.category, "a category's")
        nameable(self.type, "a type's")
        return nameable(self.agent)


def reason_of(error: Exception) -> str:
    """Returns what is wrong with what should be an entry, without what stands there."""
    if not isinstance(error, ValidationError):
        return str(error)
    wrong = error.errors(include_input=False, include_url=False, include_context=False)
    return ", ".join(f"{each['loc'][0] if each['loc'] else 'it'}: {each['msg']}" for each in wrong)
