"""What signs the audit: HMACs under a key that the database alone does not give away.

An entry's MAC is made by whoever makes the entry, so that nobody can add one by writing to the database. Chains are
sealed now and then, so that nobody can take one out and link the rest anew; see docs/decisions/0011.
"""

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Context, Decimal
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from retrieval.errors import SchemaOutdated

TOMBSTONE = re.compile(r"erased:([0-9a-f]{64})")
"""What stands for the name of an actor who was erased: the SHA-256 of the name."""

_EXACT = Context(prec=2_000)
_OPTION = "audit_key"


@dataclass(frozen=True, slots=True)
class AuditKey:
    """The installation's key for the audit, and since when every entry is signed."""

    key: bytes = field(repr=False)
    since: datetime

    def mac(self, *message: object) -> bytes:
        """Returns the MAC of the values, none of which can be mistaken for another; they are what JSON knows."""
        data = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        return hmac.digest(self.key, data, "sha256")

    def entry(self, entry: Mapping[str, object]) -> bytes:
        """Returns the MAC of an entry, given as the columns of ``audit``; the payload as values or as JSON text."""
        subject = entry.get("subject_id")
        return self.mac(
            "entry",
            entry["user_sub"],
            str(entry["id"]),
            entry["agent_key"],
            actor_sha256(str(entry["actor"])),
            entry["action"],
            None if subject is None else str(UUID(str(subject))),
            canonical(entry["payload"]),
        )

    def seal(self, chain: str, seq: int, link: bytes, pruned: tuple[int, bytes | None] = (0, None)) -> bytes:
        """Returns the seal of a chain up to a link, with what was pruned before it."""
        pruned_hash = None if pruned[1] is None else pruned[1].hex()
        return self.mac("seal", chain, seq, link.hex(), pruned[0], pruned_hash)


def actor_sha256(actor: str) -> str:
    """Returns the digest of an actor's name in hex, whether the name still stands there or its tombstone."""
    if erased := TOMBSTONE.fullmatch(actor):
        return erased[1]
    return hashlib.sha256(actor.encode()).hexdigest()


def canonical(payload: object) -> str:
    """Returns one text for all ways to write the same JSON: JSONB keeps neither order nor the form of numbers."""
    text = payload if isinstance(payload, str) else json.dumps(payload)
    values = _plain(json.loads(text, parse_float=Decimal, parse_int=Decimal))
    return json.dumps(values, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _plain(value: object) -> object:
    """Returns the value with its numbers as texts, which no text can be mistaken for."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, Decimal):
        return "n" + ("0" if value == 0 else format(value.normalize(_EXACT), "f"))
    return f"s{value}" if isinstance(value, str) else value


@dataclass(slots=True)
class LaterKey:
    """A key that is known once the database was migrated; until then nothing can be noted."""

    key: AuditKey | None = None


def signing(engine: AsyncEngine, key: AuditKey | LaterKey) -> AsyncEngine:
    """Returns the engine, on the same connections, whose transactions sign what they note."""
    return engine.execution_options(**{_OPTION: key})


def key_of(source: AsyncConnection | AsyncEngine) -> AuditKey | None:
    """Returns the key that the connection's entries are signed with; None: they are not.

    Raises:
        SchemaOutdated: it is not known yet.
    """
    engine = source.engine if isinstance(source, AsyncConnection) else source
    found = engine.sync_engine.get_execution_options().get(_OPTION)
    if isinstance(found, LaterKey):
        if found.key is None:
            raise SchemaOutdated("the database's schema was not the one of this version: run casebank migrate")
        return found.key
    return found if isinstance(found, AuditKey) else None
