"""The receipt of an erasure as a signed document: made, stored, found again, and completed by a scrub."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Select, Update, select, update

from retrieval.database.database import Database
from retrieval.tables.erasures import erasures
from writer.rights.erase import Receipt
from writer.rights.places import Scrubbed, Search, Surroundings, places
from writer.rights.signature import SIGNATURE, Signer

FORMAT = "casebank erasure receipt 1"


@dataclass(frozen=True, slots=True)
class Issuer:
    """Who issues the receipts of an installation, and what it knows of its surroundings."""

    database: Database
    signer: Signer
    around: Surroundings

    async def issue(self, erased: Receipt) -> dict[str, Any]:
        """Returns the signed receipt of an erasure, stored under the digest of the name."""
        document = self.signer.sign(_document(erased, self.around))
        await self._store(erased.user_digest, erased.erased_at, document)
        return document

    async def complete(self, scrubbed: Scrubbed, began_at: datetime, searches: Mapping[str, Search]) -> int:
        """Says in the receipts of all erasures before the scrub what it did, and returns how many there were.

        Args:
            scrubbed: what the scrub did for everybody.
            began_at: when, by the database's clock.
            searches: of the files, by the digest of the user whose marks were looked for.
        """
        done = 0
        for user_digest, erased_at, document in await stored(self.database):
            if document.get("format") == FORMAT and erased_at < began_at:
                mine = replace(scrubbed, search=searches.get(user_digest))
                again = _document(_as_receipt(document), self.around, mine)
                await self._store(user_digest, erased_at, self.signer.sign(again))
                done += 1
        return done

    async def _store(self, user_digest: str, erased_at: datetime, document: dict[str, Any]) -> None:
        async with self.database.as_eraser_elsewhere() as connection:
            await connection.execute(store(user_digest, erased_at, document))


async def stored(database: Database, user_digest: str | None = None) -> list[tuple[str, datetime, dict[str, Any]]]:
    """Returns the digests, times and receipts of all erasures, or of one digest's, the oldest first."""
    async with database.as_eraser_elsewhere() as connection:
        rows = (await connection.execute(receipts(user_digest))).all()
    return [(row.user_sub, row.erased_at, row.receipt) for row in rows]


def receipts(user_digest: str | None) -> Select[str, datetime, dict[str, Any]]:
    """Returns the statement for the receipts of a digest, or of all, in the order of time."""
    every = select(erasures.c.user_sub, erasures.c.erased_at, erasures.c.receipt)
    if user_digest is not None:
        every = every.where(erasures.c.user_sub == user_digest)
    return every.order_by(erasures.c.erased_at, erasures.c.user_sub)


def store(user_digest: str, erased_at: datetime, document: dict[str, Any]) -> Update:
    """Returns the statement that stores the receipt beside its tombstone."""
    stone = update(erasures).where(erasures.c.user_sub == user_digest, erasures.c.erased_at == erased_at)
    return stone.values(receipt=document)


def is_signed(document: dict[str, Any]) -> bool:
    """Returns whether the receipt is whole: one of an erasure that broke off, or of an older version, is not."""
    return SIGNATURE in document


def _document(erased: Receipt, around: Surroundings, scrubbed: Scrubbed | None = None) -> dict[str, object]:
    document: dict[str, object] = {"format": FORMAT, **erased.as_dict()}
    document["places"] = [place.as_dict() for place in places(erased, around, scrubbed)]
    if scrubbed is not None:
        document["scrubbed_at"] = scrubbed.at
        document["search"] = None if scrubbed.search is None else scrubbed.search.as_dict()
    return document


def _as_receipt(document: dict[str, Any]) -> Receipt:
    """Returns the receipt that the document was made of."""
    return Receipt(
        user_digest=document["user_sha256"],
        erased_at=datetime.fromisoformat(document["erased_at"]),
        rows=document["rows"],
        residue=document["residue"],
        priors_dropped=document["priors_dropped"],
        renamed=document["renamed"],
        names_left=document["names_left"],
    )
