"""What a retrieval's rows are said to have is what its statement reads."""

from typing import get_type_hints
from uuid import uuid4

from policy.features import OWN
from retrieval.retrieve import Reader
from retrieval.search.candidates import Candidate, Search, candidates, is_candidate
from retrieval.search.profile_settings import SETTINGS, STATE, ProfileSettings
from tests.retrieval.conftest import walls
from tests.writer.conftest import AGENT, Bank


def test_the_settings_and_the_state_are_the_records_attributes():
    assert set(get_type_hints(ProfileSettings)) == {*SETTINGS, *STATE}


async def test_a_row_has_what_its_record_says_and_the_policy_reads(bank: Bank, reader: Reader, user: str):
    await walls(bank, user)
    async with bank.database.fast(user, bank.profile(user).seen_at) as connection:
        rows = await connection.all(*candidates(Search(AGENT, "paint the wall")))
    own = get_type_hints(ProfileSettings) | get_type_hints(Candidate) | {"id": None}
    assert all(is_candidate(row) for row in rows)
    assert set(rows[0].keys()) == set(own)
    assert set(OWN) <= set(own)


async def test_a_profile_without_cases_is_one_row_without_a_candidate(bank: Bank, user: str):
    await bank.add(user)
    async with bank.database.fast(user, bank.profile(user).seen_at) as connection:
        (row,) = await connection.all(*candidates(Search(AGENT, str(uuid4()))))
    assert (is_candidate(row), row.k) == (False, 4)
