"""Handles names that look like secrets, which cannot be redacted: an agent's is refused, an idempotency key hashed."""

import hashlib
from functools import lru_cache

from writer.errors import SecretInName
from writer.privacy.redact import redact_text
from writer.privacy.words import Words


@lru_cache(maxsize=4096)  # an agent comes with every run
def nameable(name: str, whose: str = "an agent's") -> str:
    """Returns the name unchanged, if it may be stored; ``whose`` is its owner, for the error.

    Raises:
        SecretInName: the name looks like a secret or holds personal data; redacted, two names could become one.
    """
    if redact_text(name)[1]:
        raise SecretInName(f"{whose} name must not look like a secret or hold personal data")
    return name


def looks_secret(key: str) -> bool:
    """Returns whether an idempotency key looks like a secret or holds personal data."""
    return bool(redact_text(key)[1])


def unsecret(key: str, words: Words) -> list[str]:
    """Returns the names of an idempotency key that looks secret: its keyed hash, and its sha256, as older rows have it."""
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass"))
    return [f"keyed:{words.hash_of_call(digest.digest()).hex()}", f"sha256:{digest.hexdigest()}"]
