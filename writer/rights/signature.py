"""Signed documents: JSON that says who signed it, so that whoever holds it can see that no word of it was changed.

The key is derived from the master key: every process of an installation signs alike, and none has to keep another
secret. A signature proves that the document is as it was signed; that the signer is this installation is proven by its
public key alone, which is to be noted beforehand.

    CasebankError
    └── SignatureBroken    the document was changed, or nobody signed it
"""

import json
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
"""The field that holds the signature of all the others."""

_PURPOSE = b"casebank receipts"
_SEED_BYTES = 32


class SignatureBroken(CasebankError):
    """The document was changed since it was signed, or was never signed."""


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs documents in the name of an installation."""

    key: Ed25519PrivateKey

    @classmethod
    def of(cls, master_key: bytes) -> Self:
        """Returns the signer of the installation with this master key (HKDF, RFC 5869)."""
        seed = HKDF(SHA256(), _SEED_BYTES, salt=None, info=_PURPOSE).derive(master_key)
        return cls(Ed25519PrivateKey.from_private_bytes(seed))

    @property
    def public_key(self) -> str:
        """Returns 64 hex digits, by which anybody can verify what this signer signed."""
        return self.key.public_key().public_bytes_raw().hex()

    def sign(self, document: Mapping[str, object]) -> dict[str, object]:
        """Returns the document with its signature, in place of one that it may have had."""
        unsigned = {name: value for name, value in document.items() if name != SIGNATURE}
        signed = self.key.sign(canonical(unsigned)).hex()
        return {**unsigned, SIGNATURE: {"algorithm": ALGORITHM, "public_key": self.public_key, "value": signed}}


def canonical(document: Mapping[str, object]) -> bytes:
    """Returns the bytes that are signed: the JSON with sorted keys, without white space, in ASCII."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def read(text: str) -> dict[str, Any]:
    """Returns the document in the text.

    Raises:
        SignatureBroken: it is no JSON object, or says the same thing twice, so that two readers may see two documents.
    """
    try:
        document = json.loads(text, object_pairs_hook=_once)
    except ValueError as error:
        raise SignatureBroken(f"no receipt: {error}") from None
    if not isinstance(document, dict):
        raise SignatureBroken("no receipt: not a JSON object")
    return document


def verified(document: Mapping[str, Any]) -> str:
    """Returns the public key that signed the document.

    Raises:
        SignatureBroken: it was changed since, or was never signed.
    """
    unsigned = {name: value for name, value in document.items() if name != SIGNATURE}
    try:
        signature = document[SIGNATURE]
        public_key, value = str(signature["public_key"]), bytes.fromhex(signature["value"])
        known = signature["algorithm"] == ALGORITHM
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key)).verify(value, canonical(unsigned))
    except (KeyError, TypeError, ValueError) as error:
        raise SignatureBroken("nobody signed this receipt") from error
    except InvalidSignature:
        raise SignatureBroken("the receipt was changed since it was signed") from None
    if not known:
        raise SignatureBroken("the receipt is signed in a way that is not known")
    return public_key


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(found := dict(pairs)) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return found
