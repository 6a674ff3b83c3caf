"""Every fact that the rules read off five long conversations was judged by hand; nine in ten at least are right.

The conversations are not part of the project. Kept of them are ids of turns, hashes of what was read off, and verdicts:
a fact is right if it says what its turn says of its speaker, of the right kind, with the right value and days, and can
be understood without the turn. A change of the rules that reads something new off them leaves it to be judged.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path

import pytest

from tests.paths import DATA
from tests.writer.facts.stated import stated
from writer.facts.draft import FactDraft

CONVERSATIONS = DATA / "locomo" / "conversations.jsonl"
VERDICTS: dict[str, bool] = json.loads((Path(__file__).parent / "data" / "locomo_verdicts.json").read_text())
LEAST_JUDGED = 200
LEAST_PRECISION = 0.90


def day_of(text: str) -> date:
    day, month, year = re.search(r"(\d{1,2}) (\w+),? (\d{4})", text).groups()  # type: ignore[union-attr]
    return datetime.strptime(f"{day} {month} {year} +0000", "%d %B %Y %z").date()


def told_in_all() -> Iterator[tuple[str, str, FactDraft]]:
    """The conversation and turn of each fact, each speaker taken for the user."""
    for line in CONVERSATIONS.read_text().splitlines():
        conversation = json.loads(line)
        for session in conversation["sessions"]:
            for turn in session["turns"]:
                for told in stated(turn["text"], day_of(session["date_time"])):
                    yield conversation["conversation"], turn["turn_id"], told


def key_of(conversation: str, turn_id: str, told: FactDraft) -> str:
    about = "" if told.about is None else f"{told.about.first}..{told.about.last}"
    parts = (told.kind, told.subject, told.attribute, told.value, told.unit, about, told.text)
    return f"{conversation} {turn_id} {hashlib.sha256(chr(10).join(parts).encode()).hexdigest()[:16]}"


def test_of_what_is_read_off_long_conversations_nine_in_ten_are_right():
    if not CONVERSATIONS.exists():
        pytest.skip("no conversations beside the repository; CASEBANK_DATA names another folder")
    keys = [key_of(*found) for found in told_in_all()]
    assert [key for key in keys if key not in VERDICTS] == []
    assert len(keys) >= LEAST_JUDGED
    assert sum(VERDICTS[key] for key in keys) / len(keys) >= LEAST_PRECISION
