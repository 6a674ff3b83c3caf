"""Re-embedding and procedures: triggers come along, and until then words find them."""

from datetime import UTC, datetime

import pytest

from retrieval.ranking.retrieved import Question
from retrieval.retrieve import Reader
from retrieval.search.candidates import CaseSearch
from tests.writer.conftest import AGENT, Bank
from tests.writer.procedure_bank import PLAN, TASK, Renamed, finish, stored, two_versions
from writer.upkeep.reembed import reembed


async def test_reembedding_brings_triggers_along(bank: Bank, user: str):
    procedure_id = await two_versions(bank, user, 1.0)
    await reembed(bank.database, Renamed(), bank.profile(user), batch=2)
    assert {row.embedding_model for row in await stored(bank, user)} == {"another space"}
    reader = Reader(bank.database, Renamed())
    slate = await reader.retrieve(user, datetime.now(UTC), Question(CaseSearch(AGENT, TASK)))
    assert [each.similarity for each in slate.procedures if each.id == procedure_id] == [pytest.approx(1, abs=1e-3)]


async def test_a_procedure_that_lies_in_another_space_is_found_by_its_words(bank: Bank, user: str):
    await finish(bank, user, plan=PLAN)
    reader = Reader(bank.database, Renamed())
    slate = await reader.retrieve(user, datetime.now(UTC), Question(CaseSearch(AGENT, "restart a web server")))
    assert [each.similarity for each in slate.procedures] == [None]
