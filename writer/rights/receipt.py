"""Issues receipts of erasures as signed documents, stores and reads them, and adds the results of a scrub."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Select, Update, select, update

from retrieval.database.database import Database
from retrieval.tables.audit import erasures
from writer.rights.erase import Receipt
from writer.rights.places import MarkSearch, Scrubbed, Surroundings, places
from writer.rights.signature import SIGNATURE, Signer

FORMAT = "casebank erasure receipt 1"


@dataclass(frozen=True, slots=True)
class Issuer:
    """The issuer of an installation's receipts."""

    database: Database
    signer: Signer
    around: Surroundings

    async def issue(self, erased: Receipt) -> dict[str, Any]:
        """Signs the receipt of an erasure, stores it by the digest of the user's name, and returns it signed."""
        document = self.signer.sign(_document(erased, self.around))
        await self._store(erased.user_digest, erased.erased_at, document)
        return document

    async def complete(self, scrubbed: Scrubbed, began_at: datetime, searches: Mapping[str, MarkSearch]) -> int:
        """Adds the result of a scrub to the receipts of all earlier erasures, and returns their number.

        ``searches`` has the results of searches of the server's files, by the digest of the user's name.
        """
        done = 0
        for user_digest, erased_at, document in await stored(self.database):
            if document.get("format") == FORMAT and erased_at < began_at:
                mine = replace(scrubbed, search=searches.get(user_digest))
                names = ("rows", "residue", "renamed", "names_left")
                time = datetime.fromisoformat(document["erased_at"])
                receipt = Receipt(document["user_sha256"], time, **{name: document[name] for name in names})
                completed = _document(receipt, self.around, mine)
                await self._store(user_digest, erased_at, self.signer.sign(completed))
                done += 1
        return done

    async def _store(self, user_digest: str, erased_at: datetime, document: dict[str, Any]) -> None:
        async with self.database.as_eraser_elsewhere() as connection:
            await connection.execute(store(user_digest, erased_at, document))


async def stored(database: Database, user_digest: str | None = None) -> list[tuple[str, datetime, dict[str, Any]]]:
    """Returns the user's digest, the time and the receipt of each erasure, the oldest first.

    Without a digest: of the erasures of all users.
    """
    async with database.as_eraser_elsewhere() as connection:
        rows = (await connection.execute(receipts(user_digest))).all()
    return [(row.user_sub, row.erased_at, row.receipt) for row in rows]


def receipts(user_digest: str | None) -> Select[str, datetime, dict[str, Any]]:
    """Returns the statement that selects the receipts of one user, or of all users if None, in the order of time."""
    every = select(erasures.c.user_sub, erasures.c.erased_at, erasures.c.receipt)
    if user_digest is not None:
        every = every.where(erasures.c.user_sub == user_digest)
    return every.order_by(erasures.c.erased_at, erasures.c.user_sub)


def store(user_digest: str, erased_at: datetime, document: dict[str, Any]) -> Update:
    """Returns the statement that stores a signed receipt in the row of its erasure."""
    stone = update(erasures).where(erasures.c.user_sub == user_digest, erasures.c.erased_at == erased_at)
    return stone.values(receipt=document)


def is_signed(document: dict[str, Any]) -> bool:
    """Returns whether a stored receipt is signed; receipts of an interrupted erasure or an older version are not."""
    return SIGNATURE in document


def _document(erased: Receipt, around: Surroundings, scrubbed: Scrubbed | None = None) -> dict[str, object]:
    document: dict[str, object] = {"format": FORMAT, **erased.as_dict()}
    document["places"] = [place.as_dict() for place in places(erased, around, scrubbed)]
    if scrubbed is not None:
        document["scrubbed_at"] = scrubbed.at
        document["search"] = None if scrubbed.search is None else scrubbed.search.as_dict()
    return document
