"""Computes the hashes of the audit chains' links as the database's triggers do, to verify the stored hashes."""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from writer.audit.signing import actor_sha256, microseconds


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
