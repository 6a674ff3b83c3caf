"""Hashes of the chains' links, computed here as the database's triggers compute them, to verify the triggers' work."""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from writer.audit.signing import actor_sha256

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def genesis(chain: str) -> bytes:
    """Returns the hash before the first link of a chain: that of a user, or ``erasures``."""
    return hashlib.sha256(chain.encode()).digest()


def link_hash(before: bytes, seq: int, content: str) -> bytes:
    """Returns the hash of a link from the hash of the link before it, its number and its content."""
    return hashlib.sha256(before + seq.to_bytes(8, signed=True) + content.encode()).digest()


def entry_content(entry: Mapping[str, object]) -> str:
    """Returns the content of an entry's link, from the columns of ``audit`` with the payload as Postgres' text."""
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
    """Returns the content of a tombstone's link."""
    return _array(user_sha256, microseconds(erased_at))


def microseconds(at: object) -> int:
    """Returns the microseconds since 1970 in UTC."""
    if not isinstance(at, datetime):
        raise TypeError("expected a datetime")
    return (at - _EPOCH) // timedelta(microseconds=1)


def _array(*values: object) -> str:
    """Returns the values in the form of Postgres' jsonb_build_array(…)::text."""
    return json.dumps(values, ensure_ascii=False, separators=(", ", ": "))
