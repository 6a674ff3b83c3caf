"""Issues receipts of erasures as signed documents, stores and reads them, and adds the results of a scrub."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import select, update

from retrieval.database.database import Database
from retrieval.tables.audit import erasures
from writer.rights.erase import Receipt
from writer.rights.places import ON_THE_DISK, STATES, MarkSearch, Scrubbed, Surroundings, places
from writer.rights.signature import SignatureBroken, Signer, verified

FORMAT = "casebank erasure receipt 1"


@dataclass(frozen=True, slots=True)
class Issuer:
    """The issuer of an installation's receipts.

    Attributes:
        earlier: public keys of the installation's earlier signers, whose receipts a scrub completes as well.
    """

    database: Database
    signer: Signer
    around: Surroundings
    earlier: Sequence[str] = ()

    async def issue(self, erased: Receipt) -> dict[str, Any]:
        """Signs the receipt of an erasure, stores it by the digest of the user's name, and returns it signed."""
        document = self.signer.sign(_document(erased, self.around))
        await store(self.database, erased.user_digest, erased.erased_at, document)
        return document

    async def complete(self, scrubbed: Scrubbed, searches: Mapping[str, MarkSearch]) -> tuple[int, list[str]]:
        """Adds the result of a scrub to the receipts of all earlier erasures, and signs them anew.

        Returns the number of these receipts, and the digests of names whose receipts are left as they are: one that
        this installation did not sign, or that is another erasure's, could come from anyone, and would be signed here.

        ``searches`` has the results of searches of the server's files, by the digest of the user's name.
        """
        done, left = 0, []
        for user_digest, erased_at, document in await stored(self.database):
            if document.get("format") != FORMAT or erased_at >= scrubbed.began_at:
                continue
            if not self._signed(document) or _erasure(document) != (user_digest, erased_at):
                left.append(user_digest)
                continue
            completed = _completed(document, self.around, replace(scrubbed, search=searches.get(user_digest)))
            await store(self.database, user_digest, erased_at, self.signer.sign(completed))
            done += 1
        return done, left

    def _signed(self, document: dict[str, Any]) -> bool:
        """Returns whether this installation signed the document, with its present key or an earlier one."""
        try:
            return verified(document) in {self.signer.public_key, *self.earlier}
        except SignatureBroken:
            return False


async def store(database: Database, user_digest: str, erased_at: datetime, document: dict[str, Any]) -> None:
    """Stores a signed receipt in the row of its erasure."""
    stone = update(erasures).where(erasures.c.user_sub == user_digest, erasures.c.erased_at == erased_at)
    async with database.as_eraser_elsewhere() as connection:
        await connection.execute(stone.values(receipt=document))


async def stored(database: Database, user_digest: str | None = None) -> list[tuple[str, datetime, dict[str, Any]]]:
    """Returns the user's digest, the time and the receipt of each erasure, the oldest first.

    Without a digest: of the erasures of all users.
    """
    every = select(erasures.c.user_sub, erasures.c.erased_at, erasures.c.receipt)
    if user_digest is not None:
        every = every.where(erasures.c.user_sub == user_digest)
    async with database.as_eraser_elsewhere() as connection:
        rows = await connection.execute(every.order_by(erasures.c.erased_at, erasures.c.user_sub))
        return [(row.user_sub, row.erased_at, row.receipt) for row in rows]


def _erasure(document: dict[str, Any]) -> tuple[str, datetime]:
    return document["user_sha256"], datetime.fromisoformat(document["erased_at"])


def _document(erased: Receipt, around: Surroundings, scrubbed: Scrubbed | None = None) -> dict[str, Any]:
    document: dict[str, Any] = {"format": FORMAT, **erased.as_dict()}
    document["places"] = places(erased, around, scrubbed)
    if scrubbed is not None:
        document["scrubbed_at"] = scrubbed.at
        document["search"] = None if scrubbed.search is None else asdict(scrubbed.search)
    return document


def _completed(document: dict[str, Any], around: Surroundings, scrubbed: Scrubbed) -> dict[str, Any]:
    """Returns a receipt with the result of a later scrub.

    The scrub decides anew which words are on the disk, unless an earlier search looked for more and this one found
    none. All other places can only become worse: what was sent or copied elsewhere before the erasure is still there.
    """
    counts = {name: document[name] for name in ("rows", "residue", "renamed", "names_left")}
    later = _document(Receipt(*_erasure(document), **counts), around, scrubbed)
    anew: Sequence[str] = ON_THE_DISK
    search, earlier = scrubbed.search, document.get("search")
    looked = 0 if search is None else sum(search.looked_for.values())
    if earlier and not (search and search.found) and looked < sum(earlier["looked_for"].values()):
        later |= {name: document[name] for name in ("scrubbed_at", "search")}
        anew = ()
    found = {place["place"]: place for place in later["places"]}
    later["places"] = [
        found[place["place"]]
        if place["place"] in anew
        else max(place, found.get(place["place"], place), key=lambda each: STATES.index(each["state"]))
        for place in document["places"]
    ]
    return later
