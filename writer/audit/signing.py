"""Hashes and signatures of the audit: a chain of hashes, and HMACs with a key that is not in the database alone.

The database's triggers hash the links of a chain; this module does the same to verify them. The process that writes an
entry adds its MAC, so that a write to the database alone cannot forge an entry. Seals over the chains make it
impossible to remove an entry and link the others again; see docs/decisions/0011.
"""

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from typing import Any
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from retrieval.errors import SchemaOutdated

TOMBSTONE = re.compile(r"erased:([0-9a-f]{64})")
"""Pattern of the tombstone that replaces an erased actor's name; it contains the name's SHA-256."""

SEAL_BYTES = 32
"""Length of a seal. In the seal of the erasures, the time of the last sealing follows; see ``AuditKey.sealed_at``."""

_EPOCH = datetime.fromtimestamp(0, UTC)
_EXACT = Context(prec=2_000)
_OPTION = "audit_key"


@dataclass(frozen=True, slots=True)
class AuditKey:
    """The installation's key, which signs audit entries and seals chains."""

    key: bytes = field(repr=False)

    def mac(self, *message: object) -> bytes:
        """Returns the MAC of a list of JSON values."""
        data = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        return hmac.digest(self.key, data, "sha256")

    def entry(self, entry: Mapping[str, object]) -> bytes:
        """Returns the MAC of an audit entry, whose payload may be values or JSON text."""
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
        """Returns the seal of an audit chain up to a link; ``pruned`` has the last pruned link's number and hash."""
        pruned_hash = None if pruned[1] is None else pruned[1].hex()
        return self.mac("seal", chain, seq, link.hex(), pruned[0], pruned_hash)

    def time_of_sealing(self, at: datetime) -> bytes:
        """Returns the signed time of a sealing, which follows the seal of the erasures."""
        micros = microseconds(at)
        return micros.to_bytes(8, "big") + self.mac("all sealed", micros)

    def sealed_at(self, seal: bytes) -> datetime | None:
        """Returns the time of the last sealing from the seal of the erasures; None: it is missing or false."""
        time, mac = seal[SEAL_BYTES : SEAL_BYTES + 8], seal[SEAL_BYTES + 8 :]
        micros = int.from_bytes(time, "big")
        return (
            _EPOCH + timedelta(microseconds=micros)
            if hmac.compare_digest(self.mac("all sealed", micros), mac)
            else None
        )


def microseconds(at: datetime) -> int:
    """Returns the microseconds from 1970 to a time, in UTC."""
    return (at - _EPOCH) // timedelta(microseconds=1)


def actor_sha256(actor: str) -> str:
    """Returns the SHA-256 of an actor's name in hex, from the name or from its tombstone."""
    if erased := TOMBSTONE.fullmatch(actor):
        return erased[1]
    return hashlib.sha256(actor.encode()).hexdigest()


def genesis(chain: str) -> bytes:
    """Returns the hash with which the audit chain of a user, or of ``erasures``, begins, before its first link."""
    return hashlib.sha256(chain.encode()).digest()


def link_hash(before: bytes, seq: int, content: str) -> bytes:
    """Returns the hash of a link of an audit chain, from the hash of the link before it, its number and its content."""
    return hashlib.sha256(before + seq.to_bytes(8, signed=True) + content.encode()).digest()


def entry_content(entry: Mapping[str, Any]) -> str:
    """Returns the text of an audit entry, with its payload as Postgres writes it, that its link's hash covers."""
    subject, mac = entry["subject_id"], entry["mac"]
    return _array(
        entry["user_sub"],
        str(entry["id"]),
        entry["agent_key"],
        actor_sha256(entry["actor"]),
        entry["action"],
        None if subject is None else str(subject),
        entry["payload"],
        microseconds(entry["created_at"]),
        None if mac is None else mac.hex(),
    )


def tombstone_content(user_sha256: str, erased_at: datetime) -> str:
    """Returns the text of a tombstone that its link's hash covers."""
    return _array(user_sha256, microseconds(erased_at))


def _array(*values: object) -> str:
    """Returns the values in the form of Postgres' jsonb_build_array(…)::text."""
    return json.dumps(values, ensure_ascii=False, separators=(", ", ": "))


def canonical(payload: object) -> str:
    """Returns the canonical text of a JSON payload, because JSONB keeps neither order nor the form of numbers."""
    text = payload if isinstance(payload, str) else json.dumps(payload)
    values = _plain(json.loads(text, parse_float=Decimal, parse_int=Decimal))
    return json.dumps(values, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _plain(value: object) -> object:
    """Returns the value with numbers as "n…" and texts as "s…", so that the two cannot be confused."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, Decimal):
        return "n" + ("0" if value == 0 else format(value.normalize(_EXACT), "f"))
    return f"s{value}" if isinstance(value, str) else value


@dataclass(slots=True)
class LaterKey:
    """A holder for the audit key, which is None until the database is migrated; until then no entry can be written."""

    key: AuditKey | None = None


def signing(engine: AsyncEngine, key: LaterKey) -> AsyncEngine:
    """Returns a copy of the engine, with the same connections, whose transactions sign their audit entries."""
    return engine.execution_options(**{_OPTION: key})


def key_of(source: AsyncConnection | AsyncEngine) -> AuditKey | None:
    """Returns the key that signs the connection's audit entries; None if they are not signed.

    Raises:
        SchemaOutdated: the database is not migrated, and the key is not available yet.
    """
    engine = source.engine if isinstance(source, AsyncConnection) else source
    later: LaterKey | None = engine.sync_engine.get_execution_options().get(_OPTION)
    if later is not None and later.key is None:
        raise SchemaOutdated("the database's schema was not the one of this version: run casebank migrate")
    return None if later is None else later.key
