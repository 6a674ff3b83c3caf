"""Computes the hashes of the audit chains' links as the database's triggers do, to verify the stored hashes."""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from writer.audit.signing import actor_sha256

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def genesis(chain: str) -> bytes:
    """Returns the hash with which the audit chain of a user, or of ``erasures``, begins, before its first link."""
    return hashlib.sha256(chain.encode()).digest()


def link_hash(before: bytes, seq: int, content: str) -> bytes:
    """Returns the hash of a link of an audit chain, from the hash of the link before it, its number and its content."""
    return hashlib.sha256(before + seq.to_bytes(8, signed=True) + content.encode()).digest()


def entry_content(entry: Mapping[str, object]) -> str:
    """Returns the text of an audit entry, with its payload as Postgres writes it, that its link's hash covers."""
    subject, mac, at = entry["subject_id"], entry["mac"], entry["created_at"]
    return _array(
        entry["user_sub"],
        str(entry["id"]),
        entry["agent_key"],
        actor_sha256(str(entry["actor"])),
        entry["action"],
        None if subject is None else str(subject),
        entry["payload"],
        microseconds(at),
        mac.hex() if isinstance(mac, bytes) else None,
    )


def tombstone_content(user_sha256: str, erased_at: datetime) -> str:
    """Returns the text of a tombstone that its link's hash covers."""
    return _array(user_sha256, microseconds(erased_at))


def microseconds(at: object) -> int:
    """Returns the microseconds from 1970 to a time, in UTC."""
    if not isinstance(at, datetime):
        raise TypeError("expected a datetime")
    return (at - _EPOCH) // timedelta(microseconds=1)


def _array(*values: object) -> str:
    """Returns the values in the form of Postgres' jsonb_build_array(…)::text."""
    return json.dumps(values, ensure_ascii=False, separators=(", ", ": "))
