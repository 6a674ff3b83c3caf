"""Seals payloads: compresses and encrypts them into bytes that can be decrypted only for the same user, case and key.

    0         1         2               14
    version   encoding  nonce           AES-256-GCM ciphertext and tag

The master key wraps a user's key in the same way, so that the deletion of the wrapped key makes all data unreadable.

    CasebankError
    └── PayloadTooLarge    the decrypted payload is larger than casebank holds in memory at once
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import orjson
from backports import zstd
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from retrieval.errors import CasebankError, SealBroken
from retrieval.sealed import Part

COMPRESS_OVER_BYTES = 256
MAX_UNSEALED_BYTES = 32 << 20

_VERSION = 1
_RAW, _ZSTD = 0, 1
_WIDE = 2  # beside either: JSON with lone surrogates or integers over 64 bits, which orjson does not write or keep
_NONCE_BYTES = 12
_HEAD_BYTES = 2
_KEY_BITS = 256
# By default a frame may demand a window of 128 MiB; casebank's own frames need at most the payload's bound.
_LIMITS: dict[int, int] = {zstd.DecompressionParameter.window_log_max: MAX_UNSEALED_BYTES.bit_length() - 1}


class PayloadTooLarge(CasebankError):
    """The payload is larger than `MAX_UNSEALED_BYTES`."""


PAYLOAD = b"case"
_LABELS: Mapping[Part, bytes] = {
    "case": b"words of case",
    "checkpoint": b"words of checkpoint",
    "decision": b"words of decision",
    "fact": b"words of fact",
    "failure": b"failure of run",
    "finding": b"finding of run",
    "knowledge": b"words of knowledge",
    "payload": PAYLOAD,
    "run": b"words of run",
    "step": b"step of run",
    "summary": b"summary of session",
    "told": b"told by decision",
    "turn": b"turn of session",
}
"""Labels of the encrypted parts of rows; bytes that were sealed with one label cannot be opened with another."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A payload as JSON, compressed if it is large: the result of the slow part of sealing, which needs no key.

    Attributes:
        size: bytes of the JSON before it is compressed.
    """

    encoding: int
    data: bytes = field(repr=False)
    size: int


def label_of(part: Part, place: Sequence[int]) -> bytes:
    """Returns the label of a part of a row that stands at this place in it: the part's own, with the numbers."""
    return _LABELS[part] + b" ".join(b"%d" % number for number in place)


def pack(payload: object) -> Packed:
    """Returns the JSON payload, serialised and compressed, ready to be sealed.

    Raises:
        PayloadTooLarge: the payload has more than `MAX_UNSEALED_BYTES`.
    """
    try:
        encoding, data = _RAW, orjson.dumps(payload)
    except orjson.JSONEncodeError:
        encoding, data = _WIDE, json.dumps(payload, separators=(",", ":")).encode()
    if len(data) > MAX_UNSEALED_BYTES:
        raise PayloadTooLarge(f"the payload has {len(data)} bytes, over {MAX_UNSEALED_BYTES}")
    if len(data) > COMPRESS_OVER_BYTES:
        return Packed(encoding | _ZSTD, zstd.compress(data), len(data))
    return Packed(encoding, data, len(data))


def seal(payload: object, key: bytes, *, user_sub: str, case_id: UUID, of: bytes = PAYLOAD) -> bytes:
    """Returns the JSON payload, packed or not, sealed for this user and case, or for another row with this id.

    ``of`` labels the part of the row that is sealed.

    Raises:
        PayloadTooLarge: the payload has more than `MAX_UNSEALED_BYTES`.
    """
    packed = payload if isinstance(payload, Packed) else pack(payload)
    return _encrypt(packed.data, key, packed.encoding, _payload_owner(user_sub, case_id, of))


def unseal(blob: bytes, key: bytes, *, user_sub: str, case_id: UUID, of: bytes = PAYLOAD) -> Any:
    """Returns the JSON payload that `seal` encrypted for this user and case, or for the row of another kind ``of``.

    Raises:
        SealBroken: the bytes were sealed for something else, or were changed.
        PayloadTooLarge: the payload has more than `MAX_UNSEALED_BYTES`.
    """
    return unseal_sized(blob, key, user_sub=user_sub, case_id=case_id, of=of)[0]


def unseal_sized(blob: bytes, key: bytes, *, user_sub: str, case_id: UUID, of: bytes = PAYLOAD) -> tuple[Any, int]:
    """Returns the payload as `unseal` does, and the bytes of its JSON, which may be many times those of the blob."""
    encoding, data = _decrypt(blob, key, _payload_owner(user_sub, case_id, of))
    try:
        if encoding & _ZSTD:  # never holds more than the bound and one byte in memory
            frame = zstd.ZstdDecompressor(options=_LIMITS)
            data = frame.decompress(data, max_length=MAX_UNSEALED_BYTES + 1)
            if len(data) > MAX_UNSEALED_BYTES:
                raise PayloadTooLarge(f"the payload unfolds to more than {MAX_UNSEALED_BYTES} bytes")
            if not frame.eof:
                raise SealBroken("the payload was sealed damaged: its frame is cut")
        return (json.loads(data) if encoding & _WIDE else orjson.loads(data)), len(data)
    except (zstd.ZstdError, ValueError) as error:
        raise SealBroken("the payload was sealed damaged") from error


def new_user_key() -> bytes:
    """Returns a random key of 32 bytes."""
    return AESGCM.generate_key(_KEY_BITS)


def wrap_key(key: bytes, master: bytes, *, user_sub: str) -> bytes:
    """Returns the user's key, encrypted with the master key and bound to the user."""
    return _encrypt(key, master, _RAW, _key_owner(user_sub))


def unwrap_key(wrapped: bytes, master: bytes, *, user_sub: str) -> bytes:
    """Returns the user's key from its wrapped form.

    Raises:
        SealBroken: the bytes belong to another user or master key, or were changed.
    """
    return _decrypt(wrapped, master, _key_owner(user_sub))[1]


def _payload_owner(user_sub: str, case_id: UUID, of: bytes) -> bytes:
    return of + case_id.bytes + user_sub.encode("utf-8", "surrogatepass")


def _key_owner(user_sub: str) -> bytes:
    return b"key of" + user_sub.encode("utf-8", "surrogatepass")


def _encrypt(data: bytes, key: bytes, encoding: int, owner: bytes) -> bytes:
    head, nonce = bytes([_VERSION, encoding]), os.urandom(_NONCE_BYTES)
    return head + nonce + AESGCM(key).encrypt(nonce, data, head + owner)


def _decrypt(blob: bytes, key: bytes, owner: bytes) -> tuple[int, bytes]:
    """Returns the encoding and the plain bytes."""
    head, nonce, data = blob[:_HEAD_BYTES], blob[_HEAD_BYTES:][:_NONCE_BYTES], blob[_HEAD_BYTES + _NONCE_BYTES :]
    if head[:1] != bytes([_VERSION]) or not data:
        raise SealBroken("no sealed bytes of a known version")
    try:
        return head[1], AESGCM(key).decrypt(nonce, data, head + owner)
    except InvalidTag:
        raise SealBroken("the sealed bytes were changed, or belong to another user, case or key") from None
