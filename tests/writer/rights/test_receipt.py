"""The receipt: signed, stored without a name, true place by place."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from tests.writer.conftest import Bank, keep
from writer.rights.erase import digest, erase
from writer.rights.places import MarkSearch, Scrubbed, Surroundings
from writer.rights.receipt import Issuer, store, stored
from writer.rights.signature import Signer, verified

AROUND = Surroundings("tool traces", (), 0, archives=False)
SENDS = replace(AROUND, providers=("api.openai.com",))
COPIES = replace(AROUND, standbys=1, archives=True)
SCRUBBED = Scrubbed(datetime(2026, 11, 22, 8, tzinfo=UTC), 13, "000000010000000000000009", readable=True)


def after(erased_at: datetime, scrubbed: Scrubbed = SCRUBBED) -> Scrubbed:
    """The scrub as if it began right after the erasure."""
    return replace(scrubbed, began_at=erased_at + timedelta(microseconds=1))


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
        "reasons of revoked tokens": "gone",
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
        (SENDS, ("embedder and language model", "unknown")),
        (Surroundings("t", (), 1, archives=False), ("replicas and archives", "remains")),
        (Surroundings("t", (), 0, archives=True), ("replicas and archives", "remains")),
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
        (replace(SCRUBBED, readable=False, log_from=None, log_kept_by="may not"), None, ("unknown", "remains")),
    ],
)
async def test_a_scrub_completes_the_receipt(
    bank: Bank, issuer: Issuer, scrubbed: Scrubbed, search: MarkSearch | None, expected: tuple[str, str]
):
    user = f"user-{uuid4()}"
    erased = await erase(bank.database, user)
    await issuer.issue(erased)
    searches = {} if search is None else {digest(user): search}
    await issuer.complete(after(erased.erased_at, scrubbed), searches)
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
    scrubbed = after(last.erased_at)
    await issuer.complete(scrubbed, {digest(user): search})
    ((_, _, theirs),) = await stored(bank.database, earlier["user_sha256"])
    ((_, _, unchanged),) = await stored(bank.database, later["user_sha256"])
    assert (theirs["scrubbed_at"], theirs["search"]) == (scrubbed.at, None)
    assert unchanged == later


async def complete(
    issuer: Issuer, receipt: dict[str, Any], search: MarkSearch | None = None, scrubbed: Scrubbed | None = None
) -> dict[str, Any]:
    """Adds the result of a scrub right after the erasure; returns the receipt as it is stored then."""
    user_digest, erased_at = receipt["user_sha256"], datetime.fromisoformat(receipt["erased_at"])
    searches = {} if search is None else {user_digest: search}
    await issuer.complete(scrubbed or after(erased_at), searches)
    ((_, _, kept),) = await stored(issuer.database, user_digest)
    return kept


@pytest.mark.parametrize("later", [None, MarkSearch({"name": 1, "texts": 0}, 0, {})], ids=["none", "of fewer marks"])
async def test_what_a_search_found_stays_found_until_a_search_of_as_many_marks_finds_none(
    bank: Bank, user: str, issuer: Issuer, later: MarkSearch | None
):
    receipt = await issuer.issue(await erase(bank.database, user))
    found = await complete(issuer, receipt, MarkSearch({"name": 1, "texts": 7}, 0, {"base/1/2": 3}))
    a_minute_later = after(datetime.fromisoformat(receipt["erased_at"]) + timedelta(minutes=1))
    assert states(found)["dead rows"] == "remains"
    assert await complete(issuer, receipt, later, a_minute_later) == found
    clean = await complete(issuer, receipt, MarkSearch({"name": 1, "texts": 7}, 0, {}))
    assert (states(clean)["dead rows"], clean["search"]["found"]) == ("gone", {})


async def test_a_search_of_fewer_marks_that_finds_one_is_told(bank: Bank, user: str, issuer: Issuer):
    receipt = await issuer.issue(await erase(bank.database, user))
    await complete(issuer, receipt, MarkSearch({"name": 1, "texts": 7}, 0, {}))
    worse = await complete(issuer, receipt, MarkSearch({"name": 1, "texts": 0}, 0, {"base/1/2": 3}))
    assert (states(worse)["dead rows"], worse["search"]["found"]) == ("remains", {"base/1/2": 3})


@pytest.mark.parametrize(
    ("then", "now", "expected"),
    [
        (SENDS, AROUND, {"embedder and language model": "unknown"}),
        (AROUND, SENDS, {"embedder and language model": "unknown"}),
        (COPIES, AROUND, {"replicas and archives": "remains"}),
        (AROUND, COPIES, {"replicas and archives": "remains"}),
    ],
)
async def test_a_scrub_makes_no_place_elsewhere_better_than_it_was_at_the_erasure(
    bank: Bank, user: str, then: Surroundings, now: Surroundings, expected: dict[str, str]
):
    signer = Signer.of(os.urandom(32))
    receipt = await Issuer(bank.database, signer, then).issue(await erase(bank.database, user))
    completed = states(await complete(Issuer(bank.database, signer, now), receipt))
    for place in ("embedder and language model", "replicas and archives"):
        assert completed[place] == expected.get(place, "gone")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda receipt: {**receipt, "clean": False}, id="changed"),
        pytest.param(lambda receipt: {k: v for k, v in receipt.items() if k != "signature"}, id="unsigned"),
        pytest.param(lambda receipt: Signer.of(b"another installation's key 32 by").sign(receipt), id="of another key"),
    ],
)
async def test_a_scrub_signs_no_receipt_that_this_installation_did_not_sign(
    bank: Bank, user: str, issuer: Issuer, change: Callable[[dict[str, Any]], dict[str, Any]]
):
    erased = await erase(bank.database, user)
    forged = change(await issuer.issue(erased))
    await store(bank.database, erased.user_digest, erased.erased_at, forged)
    _, left = await issuer.complete(after(erased.erased_at), {})
    assert digest(user) in left
    assert [receipt for _, _, receipt in await stored(bank.database, digest(user))] == [forged]


async def test_a_scrub_signs_no_receipt_in_the_row_of_another_erasure(bank: Bank, user: str, issuer: Issuer):
    other = await issuer.issue(await erase(bank.database, f"{user}-other"))
    erased = await erase(bank.database, user)
    await store(bank.database, erased.user_digest, erased.erased_at, other)
    _, left = await issuer.complete(after(erased.erased_at), {})
    assert digest(user) in left
    assert [receipt for _, _, receipt in await stored(bank.database, digest(user))] == [other]


async def test_a_scrub_completes_a_receipt_of_an_earlier_master_key_with_the_present_one(
    bank: Bank, user: str, issuer: Issuer
):
    receipt = await issuer.issue(await erase(bank.database, user))
    rotated = Issuer(bank.database, Signer.of(os.urandom(32)), AROUND, [issuer.signer.public_key])
    completed = await complete(rotated, receipt)
    assert (verified(completed), states(completed)["dead rows"]) == (rotated.signer.public_key, "gone")


async def test_an_erasure_that_broke_off_has_an_unsigned_receipt_until_it_is_repeated(
    bank: Bank, user: str, issuer: Issuer
):
    await keep(bank, user)
    await erase(bank.database, user)
    await issuer.issue(await erase(bank.database, user))
    broken_off, whole = [receipt for _, _, receipt in await stored(bank.database, digest(user))]
    assert broken_off["rows"]["cases"] == 1
    assert ("signature" in broken_off, "signature" in whole) == (False, True)
