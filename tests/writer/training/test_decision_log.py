"""The log of decisions as training and the gate read it."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sqlalchemy import delete

from app.providers.wordllama import WordLlamaEmbedder
from policy.inputs import Inputs
from retrieval.ranking.retrieved import Question
from retrieval.retrieve import Reader
from retrieval.search.candidates import CaseSearch
from retrieval.tables.cases import cases
from tests.writer.conftest import AGENT, Bank
from tests.writer.trainings import learnt, log, never, rows, seen
from writer.rewards.feedback import Feedback, give_feedback
from writer.rights.erase import erase
from writer.training.decision_log import read
from writer.training.training_data import examples
from writer.upkeep.reembed import reembed


async def test_missing_rewards_are_no_decisions(bank: Bank, user: str):
    await log(bank, user, [replace(each, reward=None) for each in seen()])
    found = await learnt(bank, user, never)
    assert (found.outcome, found.decisions) == ("too few decisions", 0)


async def test_a_log_with_missing_rewards_trains_as_the_log_without_those_decisions(bank: Bank, user: str):
    known = seen()
    missing = [replace(each, reward=None) for each in seen(60, seed=2)]
    mixed = [each for pair in zip(known, missing, strict=False) for each in pair] + known[len(missing) :]
    weights = []
    for drawn in (mixed, known):
        await log(bank, user, drawn)
        await learnt(bank, user)
        weights += [row.weights for row in await rows(bank, user)]
        await erase(bank.database, user)
    assert len(weights) == 2
    assert weights[0] == weights[1]


async def test_a_slate_is_read_as_the_candidates_places_that_it_was_drawn_from(bank: Bank, user: str):
    drawn = seen(20)
    await log(bank, user, drawn)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        entries = await read(connection, user, AGENT)
    assert [entry.slate for entry in entries] == [each.decision.slate for each in drawn]


async def test_what_a_network_takes_of_a_decision_is_computed_once(bank: Bank, user: str):
    await log(bank, user, seen(1))
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        (entry,) = await read(connection, user, AGENT)
    assert entry.inputs is entry.inputs
    assert entry.inputs.case.tolist() == Inputs(entry.features).case.tolist()


async def test_a_log_reads_the_same_when_a_case_of_it_is_gone(bank: Bank, user: str):
    ids = await bank.add(user, *({"task": f"paint the {wall} wall"} for wall in ("north", "south", "east")))
    await reembed(bank.database, WordLlamaEmbedder(), bank.profile(user))
    question = Question(CaseSearch(AGENT, "paint the wall"))
    slate = await Reader(bank.database, WordLlamaEmbedder()).retrieve(user, datetime.now(UTC), question)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await connection.execute(delete(cases).where(cases.c.user_sub == user, cases.c.id == ids[0]))
        await give_feedback(connection, user, "t", Feedback(0.5, "user", decision_id=slate.retrieval_id))
        (entry,) = await read(connection, user, AGENT)
    assert (len(entry.slate), len(entry.features), entry.reward) == (3, 3, 0.5)
    assert examples([entry]).credit.sum() == pytest.approx(1)
