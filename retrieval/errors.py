"""Errors of reading the case bank; they know nothing of HTTP.

CasebankError
├── NotFound               the user has no such thing; the answer is the same if another user has it
├── UserErased             the caller's right to act for the user ended with the user's erasure
├── DatabaseUnavailable    Postgres did not answer, or went away half-way
│   ├── Deadlocked            it ended the transaction, which waited for another that waited for it
│   └── SchemaOutdated        its schema is not the one of this version
├── EmbedderError
│   ├── EmbedderUnavailable   no answer, or an error that is not about the texts; trying again later may help
│   ├── EmbedderRefused       the server is well and will not embed one of the texts
│   ├── EmbedderMisbehaved    an answer that must not be stored: wrong count, order, dimension or numbers
│   └── TextNotEmbeddable     the embedder is well; some of the texts are blank
└── ModelError
    ├── ModelUnavailable      no answer in time, or a refusal that is not about the material
    ├── ModelRefused          the server or the model will not answer this
    ├── ModelMisbehaved       an answer of another form than requested, even after a second request
    └── ModelBudgetSpent      the profile's tokens of the day are used up; the model was not asked
"""

from collections.abc import Sequence
from dataclasses import dataclass


class CasebankError(Exception):
    """The root of every error that casebank raises on purpose."""


class NotFound(CasebankError):
    """The user has no such case, retrieval or profile."""


class UserErased(CasebankError):
    """The user was erased after the caller's token was issued.

    Attributes:
        erased_at: time by the database's clock, in ISO 8601; None if unknown.
    """

    def __init__(self, message: str, erased_at: str | None = None) -> None:
        super().__init__(message)
        self.erased_at = erased_at


class DatabaseUnavailable(CasebankError):
    """Postgres did not answer in time, or the connection broke."""


class Deadlocked(DatabaseUnavailable):
    """Postgres ended the transaction, which waited for another that waited for it; nothing of it was kept."""


class SchemaOutdated(DatabaseUnavailable):
    """The database lacks a table, column or function of this version: it was not migrated."""


class EmbedderError(CasebankError):
    """No usable vectors came from the embedder."""


class EmbedderUnavailable(EmbedderError):
    """The embedder gave no answer, or refused; a later try may succeed."""


class EmbedderRefused(EmbedderError):
    """The embedder refused the request for what is in it; without the text at fault it may well answer."""


class EmbedderMisbehaved(EmbedderError):
    """The embedder's answer has the wrong count, order, dimension or numbers."""


class TextNotEmbeddable(EmbedderError):
    """Some texts have no vector; embedding the others alone succeeds.

    Attributes:
        indices: their places in the batch, rising.
    """

    def __init__(self, indices: Sequence[int]) -> None:
        super().__init__(f"nothing to embed in the texts at {list(indices)}")
        self.indices = tuple(indices)


@dataclass(frozen=True, slots=True)
class Tokens:
    """Cost of a call of a language model, in tokens."""

    prompt: int = 0
    completion: int = 0

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(self.prompt + other.prompt, self.completion + other.completion)


class ModelError(CasebankError):
    """No usable answer came from the language model.

    Attributes:
        tokens: cost of the failed call.
        why: reason in one word, for metrics.
    """

    tokens = Tokens()
    why = "failed"


class ModelUnavailable(ModelError):
    """The model gave no answer, or its server refused; a later try may succeed."""

    why = "unavailable"


class ModelRefused(ModelError):
    """The model will not answer, or the server will not take the request for what is in it."""

    why = "refused"


class ModelMisbehaved(ModelError):
    """The answer does not have the form that was requested."""

    why = "misbehaved"


class ModelBudgetSpent(ModelError):
    """The profile has used up its tokens of the day."""

    why = "over_budget"
