"""Learned policies where they serve: whose order is served, how often, with what chance, and what they learn from."""

import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest
from prometheus_client import REGISTRY
from sqlalchemy import delete, select, update
from sqlalchemy.dialects.postgresql import insert
from structlog.testing import capture_logs

from app.db import service_database
from app.providers.wordllama import WordLlamaEmbedder
from policy import default, features
from policy.experience import NAMES as EXPERIENCE
from policy.inputs import CASE, QUERY
from policy.network import untrained
from policy.slate import DEPTH
from policy.weights import pack
from retrieval.errors import EmbedderRefused
from retrieval.ports import Vectors
from retrieval.ranking.pool import Query, pool
from retrieval.ranking.slate import Question, Retrieved
from retrieval.ranking.tool_counts import ToolVectors, plans, words_of
from retrieval.retrieve import Reader
from retrieval.schema import cases, decision_slots, decisions, profiles
from retrieval.search.candidates import Search, candidates
from retrieval.search.reuse_history import reuse_history
from tests.policies import head, stored
from tests.writer.conftest import AGENT, Bank
from writer.privacy.keys import Keyring
from writer.profiles import Profile
from writer.rewards.feedback import Feedback, give_feedback
from writer.rights.erase import erase
from writer.training import lifecycle, shared_prior
from writer.training.lifecycle import NewPolicy
from writer.upkeep.reembed import reembed

EMBEDDER = WordLlamaEmbedder()
ASKED = "paint the wall"
WALLS = ["north", "south", "east", "west", "upper", "lower", "inner", "outer", "left", "right", "first", "last"]
OLDEST_FIRST = head(log_age=50.0)
NEWEST_FIRST = head(log_age=-50.0)
DAYS_AGO = datetime.now(UTC) - timedelta(days=3.3)


@pytest.fixture(scope="module")
async def bank(database_url: str) -> AsyncIterator[Bank]:
    async with service_database(database_url) as database:
        yield Bank(database, Keyring(os.urandom(32)))


@pytest.fixture(scope="module")
def reader(bank: Bank) -> Reader:
    """One process, which remembers what it loaded."""
    return Reader(bank.database, EMBEDDER, explore=True)


@pytest.fixture
def user() -> str:
    return f"user-{uuid4()}"


async def walls(bank: Bank, user: str, **more: Any) -> list[UUID]:
    """A case for each wall, the oldest first, days apart, each painted in its own way."""
    now = datetime.now(UTC)
    rows = [
        {
            "task": f"paint the {wall} wall",
            "plan": ["look", f"paint {wall}"],
            "created_at": now - timedelta(days=2 * (len(WALLS) - age) + 0.5),
            **more,
        }
        for age, wall in enumerate(WALLS)
    ]
    ids = await bank.add(user, *rows)
    await reembed(bank.database, EMBEDDER, bank.profile(user))
    await bank.set_profile(user, explore=0.0)
    return ids


async def give(bank: Bank, user: str, new: NewPolicy, agent: str = AGENT) -> int:
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        return await lifecycle.add(connection, user, agent, new)


async def ask(reader: Reader, user: str, query: str = ASKED, agent: str = AGENT, **more: Any) -> Retrieved:
    return await reader.retrieve(user, datetime.now(UTC), Question(Search(agent, query), **more))


def ids(slate: Retrieved) -> list[UUID]:
    return [choice.row.id for choice in slate.choices]


async def logged(bank: Bank, user: str) -> Sequence[Any]:
    return await bank.read(user, select(decisions).where(decisions.c.user_sub == user).order_by(decisions.c.id))


async def slates(bank: Bank, user: str) -> dict[UUID, list[Any]]:
    """The slots of each decision, in order."""
    mine = select(decision_slots).where(decision_slots.c.user_sub == user).order_by(decision_slots.c.place)
    found: dict[UUID, list[Any]] = {row.id: [] for row in await logged(bank, user)}
    for slot in await bank.read(user, mine):
        found[slot.decision_id].append(slot)
    return found


# Serving


async def test_a_promoted_policy_gives_the_order_and_says_so(bank: Bank, reader: Reader, user: str):
    oldest = (await walls(bank, user))[:4]
    before = await ask(reader, user)
    await give(bank, user, stored("serving", OLDEST_FIRST))
    for _ in range(10):  # it keeps its share for the default
        after = await ask(reader, user)
        if after.policy_version == "q-1":
            break
    assert ids(after) == oldest != ids(before)
    assert (before.policy_version, after.policy_version) == (default.VERSION, "q-1")
    assert {choice.q_value for choice in before.choices} == {None}
    assert all(0.5 < choice.q_value <= 1 for choice in after.choices)
    for choice in after.choices:
        terms = choice.terms()
        assert terms["score"] == pytest.approx(terms["prior"] + terms["residual"], abs=1e-4)
        assert terms["residual"] == pytest.approx(50 * np.log1p(terms["age_days"]), rel=1e-4)
    *_, entry = await logged(bank, user)
    assert (entry.arm, entry.policy_version) == ("serving", "q-1")
    assert entry.slate_propensity == pytest.approx(0.95)


async def test_the_blend_says_how_much_a_policy_counts(bank: Bank, user: str):
    await walls(bank, user)
    reader = Reader(bank.database, EMBEDDER)
    plain = ids(await ask(reader, user))
    await give(bank, user, stored("serving", OLDEST_FIRST, blend=0.0))
    unheard = await ask(reader, user)
    assert (ids(unheard), unheard.policy_version) == (plain, "q-1")


async def test_a_policy_of_one_user_or_agent_is_nothing_to_others(bank: Bank, user: str):
    reader, other = Reader(bank.database, EMBEDDER), f"{user}-other"
    mine, theirs = await walls(bank, user), await walls(bank, other)
    plain = await ask(reader, other)
    await give(bank, user, stored("serving", OLDEST_FIRST))
    await give(bank, other, stored("serving", OLDEST_FIRST), "another agent")
    assert ids(await ask(reader, user)) == mine[:4]
    again = await ask(reader, other)
    assert (ids(again), again.policy_version) == (ids(plain), default.VERSION)
    assert set(ids(again)) <= set(theirs)


async def test_a_rollback_takes_effect_on_the_next_retrieve(bank: Bank, user: str):
    reader = Reader(bank.database, EMBEDDER)
    await walls(bank, user)
    plain = ids(await ask(reader, user))
    await give(bank, user, stored("serving", OLDEST_FIRST))
    assert ids(await ask(reader, user)) != plain
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        assert await lifecycle.roll_back(connection, user, AGENT) == 1
    assert ids(await ask(reader, user)) == plain


async def test_a_profile_that_does_not_learn_is_served_by_the_default(bank: Bank, user: str):
    reader = Reader(bank.database, EMBEDDER)
    await walls(bank, user)
    await give(bank, user, stored("serving", OLDEST_FIRST))
    await bank.set_profile(user, learning=False)
    assert (await ask(reader, user)).policy_version == default.VERSION


async def test_a_promoted_policy_may_expect_no_case_to_help_and_says_so(bank: Bank, user: str):
    reader = Reader(bank.database, EMBEDDER)
    await walls(bank, user)
    plain = await ask(reader, user)
    modest = replace(head(), null=np.array([50.0], np.float32))
    await give(bank, user, stored("serving", modest))
    nothing = await ask(reader, user)
    assert (len(plain.choices), plain.why_empty) == (4, None)
    assert (nothing.choices, nothing.context.text, nothing.policy_version) == ([], "", "q-1")
    assert nothing.why_empty == "no case is expected to help"
    *_, entry = await logged(bank, user)
    assert (entry.mode, entry.slate_propensity) == ("hybrid", 1.0)
    assert (await slates(bank, user))[entry.id] == []


async def test_whoever_begins_anew_after_an_erasure_does_not_get_the_erased_head(bank: Bank, user: str):
    reader = Reader(bank.database, EMBEDDER)
    ids_before = await walls(bank, user)
    await give(bank, user, stored("serving", OLDEST_FIRST))
    assert ids(await ask(reader, user)) == ids_before[:4]
    await erase(bank.database, user)
    ids_after = await walls(bank, user)
    assert await give(bank, user, stored("serving", NEWEST_FIRST)) == 1
    assert ids(await ask(reader, user)) == ids_after[:-5:-1]


# Trials


async def test_a_candidate_serves_its_share_and_the_chances_are_those_of_both(bank: Bank, reader: Reader, user: str):
    oldest, n = (await walls(bank, user))[:4], 240
    await give(bank, user, stored("candidate", OLDEST_FIRST))
    for _ in range(n):
        await ask(reader, user)
    entries, slots = await logged(bank, user), await slates(bank, user)
    share = sum(entry.arm == "candidate" for entry in entries) / n
    assert share == pytest.approx(0.25, abs=4.5 * np.sqrt(0.25 * 0.75 / n))
    for entry in entries:
        served = [slot.case_id for slot in slots[entry.id]]
        assert (served == oldest) == (entry.arm == "candidate") == (entry.policy_version == "q-1")
        chance = 0.25 if entry.arm == "candidate" else 0.75
        assert entry.slate_propensity == pytest.approx(chance)
        # each of them is in its place whenever its slate is served, and perhaps in the other one's, too
        assert all(slot.propensity >= chance - 1e-6 for slot in slots[entry.id])


async def test_a_slate_on_which_candidate_and_default_agree_is_certain(bank: Bank, reader: Reader, user: str):
    await walls(bank, user)
    await give(bank, user, stored("candidate"))
    for _ in range(60):
        await ask(reader, user)
    entries = await logged(bank, user)
    assert {entry.arm for entry in entries} == {"default", "candidate"}
    assert {entry.slate_propensity for entry in entries} == {1.0}


async def test_where_nothing_may_be_tried_out_a_trial_waits(bank: Bank, user: str):
    await walls(bank, user)
    await give(bank, user, stored("candidate", OLDEST_FIRST))
    reader = Reader(bank.database, EMBEDDER)
    for _ in range(20):
        await ask(reader, user)
    assert {entry.arm for entry in await logged(bank, user)} == {"default"}


# What cannot serve


def _other_inputs() -> tuple[bytes, bytes]:
    return pack(untrained(len(CASE) + 1, len(QUERY)), features.VERSION)


BROKEN = {
    "by its checksum": stored("serving", OLDEST_FIRST, checksum=b"of others"),
    "by its version": stored(
        "serving", **dict(zip(("weights", "checksum"), pack(OLDEST_FIRST, features.VERSION + 1), strict=True))
    ),
    "by its inputs": stored("serving", **dict(zip(("weights", "checksum"), _other_inputs(), strict=True))),
    "by its numbers": stored("serving", head(log_age=float("nan"))),
}


@pytest.mark.parametrize(
    ("why", "known"),
    [
        ("WeightsCorrupt", "by its checksum"),
        ("WeightsCorrupt", "by its numbers"),
        ("WrongFeatureVersion", "by its version"),
        ("WrongFeatureVersion", "by its inputs"),
    ],
)
async def test_a_policy_that_cannot_be_loaded_is_left_to_the_default_and_counted_once(
    why: str, known: str, bank: Bank, reader: Reader, user: str
):
    def refused() -> float:
        labels = {"why": why}
        return REGISTRY.get_sample_value("casebank_policies_refused_total", labels) or 0

    await walls(bank, user)
    plain, counted = await ask(reader, user), refused()
    await give(bank, user, BROKEN[known])
    with capture_logs() as told:
        found = [await ask(reader, user) for _ in range(3)]
    assert [ids(slate) for slate in found] == [ids(plain)] * 3
    assert {slate.policy_version for slate in found} == {default.VERSION}
    assert refused() == counted + 1
    (entry,) = [entry for entry in told if entry["event"] == "policy.refused"]
    assert (entry["why"], entry["version"]) == (why, 1)
    assert user not in str(entry)
    assert {entry.arm for entry in await logged(bank, user)} == {"default"}


async def test_a_head_stops_serving_when_its_shared_prior_is_erased_whatever_comes_in_its_place(bank: Bank, user: str):
    reader, contributor = Reader(bank.database, EMBEDDER), f"{user}-contributor"
    oldest = (await walls(bank, user))[:4]

    async def store() -> int:
        async with bank.database.as_worker({contributor: datetime.now(UTC)}) as connection:
            return (await shared_prior.store(connection, head(), [contributor], 9)).version

    number = await store()
    await give(bank, user, stored("serving", OLDEST_FIRST, prior_version=number))
    assert ids(await ask(reader, user)) == oldest
    assert (await erase(bank.database, contributor)).priors_dropped == 1
    assert (await ask(reader, user)).policy_version == default.VERSION
    assert await store() == number
    assert (await ask(reader, user)).policy_version == default.VERSION
    await erase(bank.database, contributor)


# Exploration


async def test_where_nothing_is_explored_there_is_one_slate(bank: Bank, reader: Reader, user: str):
    await walls(bank, user)
    found = [await ask(reader, user) for _ in range(20)]
    assert {tuple(ids(slate)) for slate in found} == {tuple(ids(found[0]))}
    assert {choice.propensity for slate in found for choice in slate.choices} == {1}
    assert {entry.slate_propensity for entry in await logged(bank, user)} == {1}


async def test_exploration_stays_near_the_top_and_logs_the_chance_of_every_place(bank: Bank, reader: Reader, user: str):
    await walls(bank, user)
    plain = ids(await ask(reader, user))
    await bank.set_profile(user, explore=1.0)
    answers = {slate.retrieval_id: slate for slate in [await ask(reader, user) for _ in range(120)]}
    slots = await slates(bank, user)
    drawn = set()
    for entry in (await logged(bank, user))[1:]:
        served = [slot.case_id for slot in slots[entry.id]]
        top = [entry.candidate_ids[index] for index in np.argsort(-np.array(entry.scores), kind="stable")[:DEPTH]]
        assert set(served) <= set(top)
        assert served in ([], [*plain[:-1], *served[-1:]])
        assert all(0 < slot.propensity <= 1 for slot in slots[entry.id])
        assert 0 < entry.slate_propensity <= 1
        choices = answers[entry.id].choices
        assert [choice.propensity for choice in choices] == pytest.approx([slot.propensity for slot in slots[entry.id]])
        tried = "; on a slate that was tried out"
        assert {choice.why.endswith(tried) for choice in choices} <= {served != plain}
        drawn.add((tuple(served), round(entry.slate_propensity, 6)))
    assert len(drawn) > 3
    assert len({served for served, _ in drawn}) == len(drawn)  # one slate, one chance
    assert () in {served for served, _ in drawn}
    assert sum(chance for _, chance in drawn) == pytest.approx(1, abs=0.2)  # the rarest may not have come up
    assert sum(chance for _, chance in drawn) <= 1 + 1e-5


# Features


async def test_the_logged_features_are_those_of_the_rows_to_the_bit(bank: Bank, reader: Reader, user: str):
    tools = ["open_paint", "paint_wall", "clean_brush"]
    await walls(bank, user)
    await bank.add(
        user, *({"task": f"clean brush {n}", "effects": tools[n:], "created_at": DAYS_AGO} for n in range(3))
    )
    await reembed(bank.database, EMBEDDER, bank.profile(user))
    first = await ask(reader, user)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await give_feedback(connection, user, "t", Feedback(0.75, "user", decision_id=first.retrieval_id))
    await ask(reader, user, "paint the upper wall")
    entry = (await logged(bank, user))[-1]
    search = Search(AGENT, entry.query, entry.query_vector, entry.query_model)
    assert len(entry.candidate_ids) == len(WALLS) + len(tools)
    async with bank.database.fast(user, datetime.now(UTC)) as connection:
        rows = await connection.all(*candidates(search))
        uses = await connection.all(*reuse_history(search))
    assert len(uses) == 4
    names = ToolVectors()
    done = plans([*rows, *uses])
    names.want(done)
    assert set(names.wanted()) == set(tools)
    vectors = await EMBEDDER.embed([words_of(name) for name in tools])
    names.learn(dict(zip(tools, vectors, strict=True)))
    again = pool(rows, uses, done, Query(entry.query, np.array(entry.query_vector, dtype=np.float32)), names)
    assert entry.candidate_ids == again.ids
    assert entry.candidate_groups == again.group.tolist()
    assert entry.candidate_sources == again.source.tolist()
    seen = features.unpacked(entry.features)
    fresh = [features.COLUMN[name] for name in ("idle_days",)]  # rewarded a moment ago, so it is another moment now
    keep = [column for column in range(len(features.NAMES)) if column not in fresh]
    np.testing.assert_array_equal(seen[:, keep], again.features[:, keep])
    np.testing.assert_allclose(seen[:, fresh], again.features[:, fresh], atol=1e-2)


class Fussy:
    """An embedder that takes no name of a tool beside a query."""

    model, dimension = EMBEDDER.model, EMBEDDER.dimension

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if len(texts) > 1:
            raise EmbedderRefused("one text at a time")
        return await EMBEDDER.embed(texts)

    async def aclose(self) -> None:
        await EMBEDDER.aclose()


async def test_a_tool_whose_name_the_embedder_refuses_takes_no_query_down(bank: Bank, user: str):
    fussy = Reader(bank.database, Fussy())
    await walls(bank, user)
    await bank.add(user, *({"task": f"clean brush {n}", "effects": ["paint", f"clean_{n}"]} for n in range(3)))
    await reembed(bank.database, EMBEDDER, bank.profile(user))
    for _ in range(3):
        slate = await ask(fussy, user)
        assert (slate.mode, slate.degraded) == ("hybrid", [])


# Experience


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
    far = experience(await ask(reader, user, "music lessons for the first violin", k=12))[ids(first)[0]]
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
