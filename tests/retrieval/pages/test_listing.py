"""Pages of a bank: the newest first, each row once, and nobody else's."""

from uuid import UUID

from retrieval.pages.listing import cases_by_status, one_of, one_profile, page_of
from retrieval.tables.cases import cases
from tests.writer.conftest import AGENT, Bank


async def test_pages_follow_each_other_from_the_newest_to_the_oldest_case(bank: Bank, user: str):
    made = await bank.add(user, *({"task": f"task {number}"} for number in range(5)))
    seen: list[UUID] = []
    before: UUID | None = None
    while rows := await bank.read(user, page_of(cases, user, {}, before=before, limit=2)):
        assert len(rows) <= 2
        seen += [row.id for row in rows]
        before = rows[-1].id
    assert seen == sorted(made, reverse=True)


async def test_a_page_has_only_what_its_columns_must_have_and_none_lets_everything_through(bank: Bank, user: str):
    failed, *_ = await bank.add(user, {"outcome": "failure"}, {"outcome": "success"}, {"outcome": "success"})
    rows = await bank.read(user, page_of(cases, user, {"outcome": "failure", "kind": None}, before=None, limit=9))
    assert [row.id for row in rows] == [failed]


async def test_a_case_and_a_profile_are_their_users_alone(bank: Bank, user: str):
    (case_id,) = await bank.add(user, {"task": "mine"})
    assert [row.task for row in await bank.read(user, one_of(cases, user, case_id))] == ["mine"]
    assert [row.agent_key for row in await bank.read(user, one_profile(user, AGENT))] == [AGENT]
    assert await bank.read("somebody", one_of(cases, "somebody", case_id)) == []
    assert await bank.read("somebody", one_profile("somebody", AGENT)) == []


async def test_cases_are_counted_by_status(bank: Bank, user: str):
    await bank.add(user, {}, {}, {"status": "pruned"})
    rows = await bank.read(user, cases_by_status(user, AGENT))
    assert [(row.status, row.cases) for row in rows] == [("pruned", 1), ("ready", 2)]
