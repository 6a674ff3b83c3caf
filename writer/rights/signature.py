"""Signed documents: JSON with a signature and its public key, which proves that the document was not changed.

The key is derived from the master key, so that all processes of an installation sign alike without a further secret. To
prove that this installation is the signer, its public key must be noted beforehand.

    CasebankError
    └── SignatureBroken    the document was changed, or was never signed
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from retrieval.errors import CasebankError

ALGORITHM = "Ed25519"
SIGNATURE = "signature"
"""The field of a document with the signature of all other fields."""

_PURPOSE = b"casebank receipts"
_SEED_BYTES = 32
_NO_SPACE = re.compile(r"\S")


class SignatureBroken(CasebankError):
    """The document was changed since it was signed, or was never signed."""


@dataclass(frozen=True, slots=True)
class Signer:
    """The signer of an installation's documents."""

    key: Ed25519PrivateKey

    @classmethod
    def of(cls, master_key: bytes) -> Self:
        """Derives the signer from the installation's master key (HKDF, RFC 5869)."""
        seed = HKDF(SHA256(), _SEED_BYTES, salt=None, info=_PURPOSE).derive(master_key)
        return cls(Ed25519PrivateKey.from_private_bytes(seed))

    @property
    def public_key(self) -> str:
        """Returns the public key as 64 hex digits, which verifies the signatures of this signer."""
        return self.key.public_key().public_bytes_raw().hex()

    def sign(self, document: Mapping[str, object]) -> dict[str, object]:
        """Returns the document with this signer's signature in place of any other."""
        unsigned = {name: value for name, value in document.items() if name != SIGNATURE}
        signed = self.key.sign(canonical(unsigned)).hex()
        return {**unsigned, SIGNATURE: {"algorithm": ALGORITHM, "public_key": self.public_key, "value": signed}}


def canonical(document: Mapping[str, object]) -> bytes:
    """Returns the canonical bytes of a document for its signature: JSON with sorted keys, no white space, ASCII."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def documents(text: str) -> list[dict[str, Any]]:
    """Parses the text of signed documents, at least one, one after the other; no signature is verified.

    Raises:
        SignatureBroken: the text is something else than JSON objects, or an object has a name twice, which readers may
            read differently.
    """
    decoder, found, text, at = json.JSONDecoder(object_pairs_hook=_once), list[dict[str, Any]](), text.strip(), 0
    while at < len(text) or not found:
        try:
            document, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            raise SignatureBroken(f"no receipt: {error}") from None
        if not isinstance(document, dict):
            raise SignatureBroken("no receipt: not a JSON object")
        found.append(document)
        following = _NO_SPACE.search(text, end)
        at = following.start() if following else len(text)
    return found


def verified(document: Mapping[str, Any]) -> str:
    """Verifies the signature of a document and returns the signer's public key.

    Raises:
        SignatureBroken: the document was changed since it was signed, or was never signed.
    """
    unsigned = {name: value for name, value in document.items() if name != SIGNATURE}
    try:
        signature = document[SIGNATURE]
        public_key, value = str(signature["public_key"]), bytes.fromhex(signature["value"])
        known = signature["algorithm"] == ALGORITHM
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key)).verify(value, canonical(unsigned))
    except (KeyError, TypeError, ValueError) as error:
        raise SignatureBroken("this receipt is not signed") from error
    except InvalidSignature:
        raise SignatureBroken("the receipt was changed since it was signed") from None
    if not known:
        raise SignatureBroken("the receipt is signed with an unknown algorithm")
    return public_key


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(fields := dict(pairs)) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return fields
