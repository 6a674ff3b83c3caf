"""What came of similar decisions before: the profile's own, by the share that each case has in them."""

from datetime import UTC, datetime
from uuid import UUID

from sqlalchemy import delete, update
from sqlalchemy.dialects.postgresql import insert

from policy.experience import NAMES as EXPERIENCE
from retrieval.ranking.retrieved import Retrieved
from retrieval.retrieve import Reader
from retrieval.search.candidates import Search
from retrieval.search.reuse_history import reuse_history
from retrieval.tables.cases import cases
from retrieval.tables.decisions import decision_slots
from retrieval.tables.profiles import profiles
from tests.retrieval.conftest import ASKED, EMBEDDER, WALLS, ask, ids, logged, walls
from tests.writer.conftest import AGENT, Bank
from writer.profiles import Profile
from writer.rewards.feedback import Feedback, give_feedback
from writer.upkeep.reembed import reembed


async def reward(bank: Bank, user: str, slate: Retrieved, used: UUID, value: float) -> None:
    """As a run does that says which case it used."""
    mine = decision_slots.c.user_sub == user, decision_slots.c.decision_id == slate.retrieval_id
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await connection.execute(update(decision_slots).where(*mine).values(used=decision_slots.c.case_id == used))
        await give_feedback(connection, user, "t", Feedback(value, "user", decision_id=slate.retrieval_id))


def experience(slate: Retrieved) -> dict[UUID, dict[str, float]]:
    return {choice.row.id: {name: choice.terms()[name] for name in EXPERIENCE} for choice in slate.choices}


async def test_what_earned_a_reward_on_a_like_query_counts_for_its_plan(bank: Bank, reader: Reader, user: str):
    rows = [{"task": f"paint the {wall} wall", "plan": [way]} for wall in WALLS[:3] for way in ("by brush", "by spray")]
    await bank.add(user, *rows)
    await reembed(bank.database, EMBEDDER, bank.profile(user))
    await bank.set_profile(user, explore=0.0)
    first = await ask(reader, user, k=6)
    plan = {choice.row.id: choice.row.plan[0] for choice in first.choices}
    before = experience(first)
    (brush, *_), (spray, *_) = ([it for it in plan if plan[it] == way] for way in ("by brush", "by spray"))
    await reward(bank, user, first, brush, 1.0)
    await reward(bank, user, await ask(reader, user, k=6), spray, 0.0)
    after = experience(await ask(reader, user, "paint the new wall", k=6))
    assert set(after) == set(before)
    for case_id, known in after.items():
        up = 1 if plan[case_id] == "by brush" else -1
        for name in ("past_odds", "past_odds_wide"):
            assert up * known[name] > before[case_id][name] == 0
        assert up * (known["past_odds_case"] - before[case_id]["past_odds_case"]) >= 0
        assert known["past_mass"] > before[case_id]["past_mass"] == 0
    assert after[brush]["past_odds_case"] > 0 > after[spray]["past_odds_case"]


async def test_what_is_usual_is_the_mean_reward_of_the_profiles_own_decisions(bank: Bank, reader: Reader, user: str):
    other = f"{user}-other"
    await walls(bank, user)
    await walls(bank, other)
    assert (await ask(reader, user)).choices[0].terms()["usual_reward"] is None
    for whose, value in ((user, 1.0), (user, 0.25), (user, 0.25), (other, 1.0)):
        slate = await ask(reader, whose)
        await reward(bank, whose, slate, ids(slate)[0], value)
    assert {choice.terms()["usual_reward"] for choice in (await ask(reader, user)).choices} == {0.5}


async def test_a_query_of_another_kind_is_told_less(bank: Bank, reader: Reader, user: str):
    await walls(bank, user)
    first = await ask(reader, user)
    await reward(bank, user, first, ids(first)[0], 1.0)
    near = experience(await ask(reader, user, k=12))[ids(first)[0]]
    far = experience(await ask(reader, user, "build a wall of bricks round the garden", k=12))[ids(first)[0]]
    assert near["past_odds"] > far["past_odds"] >= 0


async def test_nobody_learns_from_another_user_or_agent(bank: Bank, reader: Reader, user: str):
    other = f"{user}-other"
    await walls(bank, user)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await connection.execute(insert(profiles).values(user_sub=user, agent_key="second", explore=0))
    await walls(bank, user, agent_key="second")
    await reembed(bank.database, EMBEDDER, Profile(user, "second", datetime.now(UTC)))
    await walls(bank, other)
    before = [experience(await ask(reader, user, agent="second")), experience(await ask(reader, other))]
    first = await ask(reader, user)
    await reward(bank, user, first, ids(first)[0], 1.0)
    assert experience(await ask(reader, user)) != experience(first)
    assert [experience(await ask(reader, user, agent="second")), experience(await ask(reader, other))] == before


async def test_a_case_that_is_gone_takes_its_share_of_the_reward_with_it(bank: Bank, reader: Reader, user: str):
    await walls(bank, user)
    first = await ask(reader, user)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await give_feedback(connection, user, "t", Feedback(1.0, "user", decision_id=first.retrieval_id))
    gone = delete(cases).where(cases.c.user_sub == user, cases.c.id == ids(first)[0])
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        assert (await connection.execute(gone)).rowcount == 1
    second = await ask(reader, user)
    assert ids(first)[0] not in ids(second)
    assert len(second.choices) == 4
    entry = (await logged(bank, user))[0]
    async with bank.database.fast(user, datetime.now(UTC)) as connection:
        uses = await connection.all(*reuse_history(Search(AGENT, ASKED, entry.query_vector, entry.query_model)))
    assert [(use.case_id, use.credit) for use in uses] == [(case_id, 0.25) for case_id in ids(first)[1:]]
