import tracemalloc
from typing import Any
from uuid import UUID, uuid4

import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from retrieval.errors import SealBroken
from writer.privacy import seal as sealing
from writer.privacy.seal import PayloadTooLarge, new_user_key, seal, unseal, unwrap_key, wrap_key

USER, CASE, KEY = "auth0|ada", UUID(int=7), bytes(range(32))
LARGE = {"steps": [{"tool": "search", "output": "the same again " * 400}]}

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
strings = st.text(st.characters(exclude_categories=()))
payloads = st.recursive(
    scalars | strings,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(strings, inner, max_size=5),
    max_leaves=20,
)


def opened(blob: bytes, key: bytes = KEY, user_sub: str = USER, case_id: UUID = CASE) -> Any:
    return unseal(blob, key, user_sub=user_sub, case_id=case_id)


def sealed(payload: Any) -> bytes:
    return seal(payload, KEY, user_sub=USER, case_id=CASE)


def sealed_frame(frame: bytes) -> bytes:
    """A compressed frame of our own making, sealed with the right key."""
    return sealing._encrypt(frame, KEY, sealing._ZSTD, sealing._payload_owner(USER, CASE, sealing.PAYLOAD))  # noqa: SLF001


@given(payloads)
def test_any_json_comes_back_as_it_was(payload: Any) -> None:
    assert opened(sealed(payload)) == payload


@given(strings, st.uuids())
def test_any_user_and_case_open_what_was_sealed_for_them(user_sub: str, case_id: UUID) -> None:
    assert opened(seal([1], KEY, user_sub=user_sub, case_id=case_id), user_sub=user_sub, case_id=case_id) == [1]


def test_a_payload_of_a_few_hundred_bytes_is_compressed_and_a_smaller_one_is_not() -> None:
    assert len(sealed(LARGE)) < 300
    assert sealed(LARGE)[1] == sealing._ZSTD  # noqa: SLF001
    assert sealed("x" * 300)[1] == sealing._ZSTD  # noqa: SLF001
    assert sealed("x" * 200)[1] == sealing._RAW  # noqa: SLF001


def test_the_same_payload_is_never_sealed_to_the_same_bytes() -> None:
    assert len({sealed(LARGE) for _ in range(100)}) == 100


def test_no_plain_text_shows() -> None:
    assert b"forty-two" not in sealed({"answer": "forty-two"})


@pytest.mark.parametrize("payload", [LARGE, {"a": 1}, "\ud800"])
def test_a_change_of_any_byte_breaks_the_seal(payload: Any) -> None:
    blob = sealed(payload)
    for place in range(len(blob)):
        changed = bytearray(blob)
        changed[place] ^= 1 << place % 8
        with pytest.raises(SealBroken):
            opened(bytes(changed))


@given(st.binary(max_size=200))
def test_no_bytes_from_elsewhere_open(blob: bytes) -> None:
    with pytest.raises(SealBroken):
        opened(b"\x01" + blob)
    with pytest.raises(SealBroken):
        opened(blob)


def test_every_cut_breaks_the_seal() -> None:
    blob = sealed({"a": 1})
    for length in range(len(blob)):
        with pytest.raises(SealBroken):
            opened(blob[:length])


def test_a_seal_of_another_user_case_or_key_does_not_open() -> None:
    blob = sealed(LARGE)
    for other in ({"user_sub": "auth0|bob"}, {"case_id": uuid4()}, {"key": new_user_key()}):
        with pytest.raises(SealBroken):
            opened(blob, **other)


def test_a_small_frame_that_unfolds_to_hundreds_of_megabytes_is_refused_in_bounded_memory() -> None:
    blob = sealed_frame(zstd.compress(bytes(400 << 20)))
    assert len(blob) < 20_000
    tracemalloc.start()
    with pytest.raises(PayloadTooLarge):
        opened(blob)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2.5 * sealing.MAX_UNSEALED_BYTES


def test_a_payload_that_could_not_be_unsealed_is_not_sealed() -> None:
    assert opened(sealed("x" * (sealing.MAX_UNSEALED_BYTES - 2)))
    with pytest.raises(PayloadTooLarge):
        sealed("x" * (sealing.MAX_UNSEALED_BYTES - 1))


@pytest.mark.parametrize("frame", [b"", b"no frame", zstd.compress(b"[1, 2]")[:-3], zstd.compress(b"[1, 2")])
def test_a_damaged_frame_under_the_right_key_breaks_the_seal(frame: bytes) -> None:
    with pytest.raises(SealBroken):
        opened(sealed_frame(frame))


def test_a_user_key_unwraps_for_its_user_and_master_only() -> None:
    key, master = new_user_key(), new_user_key()
    wrapped = wrap_key(key, master, user_sub=USER)
    assert key not in wrapped
    assert unwrap_key(wrapped, master, user_sub=USER) == key
    with pytest.raises(SealBroken):
        unwrap_key(wrapped, master, user_sub="auth0|bob")
    with pytest.raises(SealBroken):
        unwrap_key(wrapped, new_user_key(), user_sub=USER)


def test_a_change_of_any_byte_of_a_wrapped_key_breaks_it() -> None:
    wrapped = wrap_key(new_user_key(), KEY, user_sub=USER)
    for place in range(len(wrapped)):
        with pytest.raises(SealBroken):
            unwrap_key(wrapped[:place] + bytes([wrapped[place] ^ 1]) + wrapped[place + 1 :], KEY, user_sub=USER)


def test_a_wrapped_key_cannot_pass_for_a_payload() -> None:
    with pytest.raises(SealBroken):
        opened(wrap_key(new_user_key(), KEY, user_sub=USER))


def test_user_keys_are_random_and_long_enough_for_aes_256() -> None:
    assert len({new_user_key() for _ in range(100)}) == 100
    assert len(new_user_key()) == 32
