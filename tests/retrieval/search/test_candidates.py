"""What a retrieval's rows are said to have is what its statement reads."""

from datetime import UTC, datetime
from typing import get_type_hints
from uuid import uuid4

from retrieval.retrieve import Reader
from retrieval.search.candidates import POOL, Candidate, CaseSearch, candidates
from retrieval.search.profile_settings import SETTINGS, STATE, ProfileSettings
from tests.cluster import one_postgres
from tests.plans import compared_in_vain, plan
from tests.retrieval.conftest import EMBEDDER, walls
from tests.writer.conftest import AGENT, Bank
from writer.upkeep.reembed import reembed


def test_the_settings_and_the_state_are_the_records_attributes():
    assert set(get_type_hints(ProfileSettings)) == {*SETTINGS, *STATE}


async def test_a_row_has_what_its_record_says_and_the_policy_reads(bank: Bank, reader: Reader, user: str):
    await walls(bank, user)
    async with bank.database.fast(user, bank.profile(user).seen_at) as connection:
        rows = await connection.all(*candidates(CaseSearch(AGENT, "paint the wall")))
    own = get_type_hints(ProfileSettings) | get_type_hints(Candidate) | {"id": None}
    assert all(row.id for row in rows)
    assert set(rows[0].keys()) == set(own)


async def test_a_profile_without_cases_is_one_row_without_a_candidate(bank: Bank, user: str):
    await bank.add(user)
    async with bank.database.fast(user, bank.profile(user).seen_at) as connection:
        (row,) = await connection.all(*candidates(CaseSearch(AGENT, str(uuid4()))))
    assert (row.id, row.k) == (None, 4)


@one_postgres
async def test_the_plan_for_any_user_compares_no_case_with_each_others_vector_and_converts_the_querys_once(
    bank: Bank, user: str, database_url: str
):
    count = 300
    await bank.add(user, *({"task": f"paint wall {number}", "plan": ["look"]} for number in range(count)))
    await reembed(bank.database, EMBEDDER, bank.profile(user))
    (vector,) = await EMBEDDER.embed(["paint the wall"])
    search = CaseSearch(AGENT, "paint the wall", vector=vector.tolist(), model=EMBEDDER.model)
    statement, parameters = candidates(search)
    asked = {**parameters, "user_sub": user, "authorised_at": datetime.now(UTC)}
    assert await compared_in_vain(database_url, statement, asked) < count * POOL  # all with all: count squared
    distances = [line for line in (await plan(database_url, statement, asked)).splitlines() if "<=>" in line]
    assert len(distances) > 0
    assert all("InitPlan" in line for line in distances)  # the query's vector is converted once
