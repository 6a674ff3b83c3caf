"""Signatures: whoever holds a document can see whether a word of it was changed."""

import json
import os
from typing import Any

import pytest

from writer.rights.signature import SIGNATURE, SignatureBroken, Signer, documents, verified

DOCUMENT = {"format": "casebank erasure receipt 1", "rows": {"cases": 3}, "clean": True, "places": [{"what": "Zoë"}]}


@pytest.fixture
def signer() -> Signer:
    return Signer.of(os.urandom(32))


def test_a_signed_document_verifies_whatever_the_order_of_its_fields_and_its_white_space(signer: Signer):
    signed = signer.sign(DOCUMENT)
    backwards = json.dumps(dict(reversed(signed.items())), indent=3, ensure_ascii=False)
    assert verified(documents(backwards)[0]) == signer.public_key


def test_every_changed_character_of_what_is_signed_is_noticed(signer: Signer):
    text = json.dumps(signer.sign(DOCUMENT), separators=(",", ":"))
    for place, old in enumerate(text):
        if text[place - 1 : place] == "\\" or old.isspace():
            continue
        changed = text[:place] + ("0" if old != "0" else "1") + text[place + 1 :]
        with pytest.raises(SignatureBroken):
            verified(documents(changed)[0])


@pytest.mark.parametrize(
    "change",
    [
        {"clean": False},
        {"more": 1},
        {SIGNATURE: None},
        {SIGNATURE: {}},
        {SIGNATURE: {"algorithm": "none", "public_key": "", "value": ""}},
        {SIGNATURE: {"algorithm": "Ed25519", "public_key": "00" * 32, "value": "00" * 64}},
    ],
)
def test_what_was_changed_or_never_signed_is_refused(signer: Signer, change: dict[str, Any]):
    with pytest.raises(SignatureBroken):
        verified({**signer.sign(DOCUMENT), **change})


def test_a_document_without_a_field_that_was_signed_is_refused(signer: Signer):
    signed = signer.sign(DOCUMENT)
    for name in signed:
        with pytest.raises(SignatureBroken):
            verified({key: value for key, value in signed.items() if key != name})


def test_a_document_that_says_a_thing_twice_is_refused(signer: Signer):
    text = json.dumps(signer.sign(DOCUMENT))
    with pytest.raises(SignatureBroken, match="twice"):
        documents('{"clean": false, ' + text[1:])


@pytest.mark.parametrize("text", ["", "[]", "3", "null", "{", "\ud800", "[" * 10**5])
def test_what_is_no_document_is_refused(text: str):
    with pytest.raises(SignatureBroken):
        verified(documents(text)[0])


def test_one_master_key_has_one_signer_and_another_has_another():
    master = os.urandom(32)
    assert Signer.of(master).public_key == Signer.of(master).public_key != Signer.of(os.urandom(32)).public_key
    assert Signer.of(master).public_key != master.hex()
