"""What can go wrong when reading the case bank; nothing here knows of HTTP.

CasebankError
├── NotFound               the user has no such thing (nor does the answer tell whether somebody else has)
├── UserErased             the caller's right to act for the user ended with the user's erasure
├── DatabaseUnavailable    Postgres did not answer, or went away half-way
└── EmbedderError
    ├── EmbedderUnavailable   no answer, or one that has nothing to do with the texts; trying again later may help
    ├── EmbedderRefused       the server is well and will not embed one of the texts
    ├── EmbedderMisbehaved    an answer that must not be stored: wrong count, order, dimension or numbers
    └── TextNotEmbeddable     the embedder is well; some of the texts have nothing in them to embed
"""

from collections.abc import Sequence


class CasebankError(Exception):
    """The root of every error that casebank raises on purpose."""


class NotFound(CasebankError):
    """The user has no such case, retrieval or profile."""


class UserErased(CasebankError):
    """The user was erased after the caller's token was issued."""


class DatabaseUnavailable(CasebankError):
    """Postgres did not answer in time, or the connection broke."""


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
