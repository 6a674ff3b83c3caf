"""The receipt: signed, stored without a name, true place by place."""

import json
import os
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from tests.writer.conftest import Bank, keep
from writer.rights.elsewhere import digest
from writer.rights.erase import erase
from writer.rights.places import Log, MarkSearch, Scrubbed, Surroundings
from writer.rights.receipt import Issuer, stored
from writer.rights.signature import Signer, verified

AROUND = Surroundings("tool traces", (), 0, archives=False)
SCRUBBED = Scrubbed("2026-11-22T08:00:00+00:00", 13, Log("000000010000000000000009"), readable=True)


@pytest.fixture
def issuer(bank: Bank) -> Issuer:
    return Issuer(bank.database, Signer.of(os.urandom(32)), AROUND)


def states(receipt: dict[str, Any]) -> dict[str, str]:
    return {place["place"]: place["state"] for place in receipt["places"]}


async def test_a_receipt_is_signed_and_stored_and_names_nobody(bank: Bank, user: str, issuer: Issuer):
    await keep(bank, user)
    receipt = await issuer.issue(await erase(bank.database, user))
    assert verified(receipt) == issuer.signer.public_key
    ((_, _, kept),) = await stored(bank.database, digest(user))
    assert kept == receipt
    assert verified(kept) == issuer.signer.public_key  # the database keeps JSON in another order
    assert user not in json.dumps(kept)


async def test_without_a_scrub_it_says_that_dead_rows_and_log_remain(bank: Bank, user: str, issuer: Issuer):
    await keep(bank, user)
    assert states(await issuer.issue(await erase(bank.database, user))) == {
        "rows": "gone",
        "key": "gone",
        "names in the rows of others": "gone",
        "statistics": "gone",
        "tombstone": "remains",
        "dead rows": "remains",
        "write-ahead log": "remains",
        "disk": "unknown",
        "replicas and archives": "gone",
        "backups": "unknown",
        "embedder and language model": "gone",
        "logs": "unknown",
        "memory of running processes": "remains",
    }


async def test_what_remains_says_until_when(bank: Bank, user: str, issuer: Issuer):
    receipt = await issuer.issue(await erase(bank.database, user))
    assert [place for place in receipt["places"] if place["state"] == "remains" and not place.get("until")] == []


@pytest.mark.parametrize(
    ("around", "expected"),
    [
        (Surroundings("t", ("api.openai.com",), 0, archives=False), ("embedder and language model", "unknown")),
        (Surroundings("t", (), 1, archives=False), ("replicas and archives", "remains")),
        (Surroundings("t", (), 0, archives=True), ("replicas and archives", "remains")),
        (Surroundings("t"), ("replicas and archives", "unknown")),
    ],
)
async def test_what_is_sent_or_copied_elsewhere_is_told(
    bank: Bank, user: str, around: Surroundings, expected: tuple[str, str]
):
    elsewhere = Issuer(bank.database, Signer.of(os.urandom(32)), around)
    assert expected in states(await elsewhere.issue(await erase(bank.database, user))).items()


@pytest.mark.parametrize(
    ("scrubbed", "search", "expected"),
    [
        (SCRUBBED, MarkSearch({"name": 1}, 0, {}), ("gone", "gone")),
        (SCRUBBED, MarkSearch({"name": 1}, 0, {"base/1/2": 3}), ("remains", "gone")),
        (SCRUBBED, MarkSearch({"name": 1}, 0, {"postgres/pg_wal/00000001000000000000000A": 3}), ("gone", "remains")),
        (SCRUBBED, None, ("gone", "gone")),
        (replace(SCRUBBED, readable=False, log=Log(None, "may not")), None, ("unknown", "remains")),
    ],
)
async def test_a_scrub_completes_the_receipt(
    bank: Bank, issuer: Issuer, scrubbed: Scrubbed, search: MarkSearch | None, expected: tuple[str, str]
):
    user = f"user-{uuid4()}"
    erased = await erase(bank.database, user)
    await issuer.issue(erased)
    searches = {} if search is None else {digest(user): search}
    await issuer.complete(scrubbed, erased.erased_at + timedelta(microseconds=1), searches)
    ((_, _, mine),) = await stored(bank.database, digest(user))
    assert (states(mine)["dead rows"], states(mine)["write-ahead log"]) == expected
    assert verified(mine) == issuer.signer.public_key


async def test_a_scrub_speaks_in_the_receipts_of_all_before_it_and_of_nobody_after(
    bank: Bank, user: str, issuer: Issuer
):
    earlier = await issuer.issue(await erase(bank.database, f"{user}-earlier"))
    last = await erase(bank.database, user)
    await issuer.issue(last)
    later = await issuer.issue(await erase(bank.database, f"{user}-later"))
    search = MarkSearch({"name": 1, "texts": 7}, 0, {})
    await issuer.complete(SCRUBBED, last.erased_at + timedelta(microseconds=1), {digest(user): search})
    ((_, _, theirs),) = await stored(bank.database, earlier["user_sha256"])
    ((_, _, after),) = await stored(bank.database, later["user_sha256"])
    assert (theirs["scrubbed_at"], theirs["search"]) == (SCRUBBED.at, None)
    assert after == later


async def test_an_erasure_that_broke_off_has_an_unsigned_receipt_until_it_is_repeated(
    bank: Bank, user: str, issuer: Issuer
):
    await keep(bank, user)
    await erase(bank.database, user)
    await issuer.issue(await erase(bank.database, user))
    broken_off, whole = [receipt for _, _, receipt in await stored(bank.database, digest(user))]
    assert broken_off["rows"]["cases"] == 1
    assert ("signature" in broken_off, "signature" in whole) == (False, True)
