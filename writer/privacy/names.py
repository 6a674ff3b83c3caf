"""Handles names that look like secrets, which cannot be redacted: an agent's is refused, an idempotency key hashed."""

import hashlib
from functools import lru_cache

from writer.errors import SecretInName
from writer.privacy.redact import redact_text


@lru_cache(maxsize=4096)  # an agent comes with every run
def nameable(name: str, whose: str = "an agent's") -> str:
    """Returns the name unchanged, if it may be stored; ``whose`` is its owner, for the error.

    Raises:
        SecretInName: the name looks like a secret or holds personal data; redacted, two names could become one.
    """
    if redact_text(name)[1]:
        raise SecretInName(f"{whose} name must not look like a secret or hold personal data")
    return name


def unsecret(key: str) -> str:
    """Returns an idempotency key, or its sha256 if the key looks like a secret or holds personal data."""
    if not redact_text(key)[1]:
        return key
    return "sha256:" + hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
