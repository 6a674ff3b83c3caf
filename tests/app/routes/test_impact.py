"""What memory changed, by the lots that the service drew itself, the rewards that came, and what was used of it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from app.impact.report import LEAST_JUDGED, MOST_FOR_POLICIES
from retrieval.sealed import UNREADABLE
from retrieval.tables.decisions import decision_slots, decisions
from tests.policies import head, stored
from tests.service import AGENT, User
from writer.training import lifecycle

TOLD, EMPTY, COPIES = 57, 3, 8
"""Slates with a case and without one that are looked at, and how often each counts: one slate in twenty is empty."""
DECISIONS = COPIES * (TOLD + EMPTY)

COPY = """
INSERT INTO {table} ({columns})
SELECT {read} FROM {table}, generate_series(2, :copies) AS number WHERE {table}.user_sub = :user_sub
"""
"""Copies a user's rows."""

EARLIER = """
(lpad(to_hex(('x' || left(replace({id}::text, '-', ''), 12))::bit(48)::bigint - number * 3600000), 12, '0')
 || substr(replace({id}::text, '-', ''), 13))::uuid
"""
"""The id of a decision that was made ``number`` hours before."""


async def impact(user: User, **query: Any) -> dict[str, Any]:
    given = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in query.items()}
    answer = await user.http.get("/v1/impact", params={"agent": AGENT, **given})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def live(user: User, *, told: float, empty: float) -> str:
    """Asks until the lots left enough slates empty, and says what came of each by whether a case was told.

    Returns the id of the only case of the bank.
    """
    answer = await user.http.put(f"/v1/profiles/{AGENT}", json={"explore": 0.5})
    assert answer.status_code == 200, answer.text
    case_id = await user.retain("water the roses", outcome="failure", reward=0, reward_source="user")
    await user.settle()
    slates: dict[bool, list[str]] = {True: [], False: []}
    while len(slates[True]) < TOLD or len(slates[False]) < EMPTY:
        found = await user.retrieve(f"water rose number {sum(map(len, slates.values()))}")
        await user.feedback(retrieval_id=found["retrieval_id"], reward=told if found["cases"] else empty)
        slates[bool(found["cases"])].append(found["retrieval_id"])
    beyond = slates[True][TOLD:] + slates[False][EMPTY:]
    await user.rows("DELETE FROM decisions WHERE user_sub = :user_sub AND id = ANY(:ids) RETURNING 1", ids=beyond)
    await copy(user, COPIES)
    return case_id


async def copy(user: User, copies: int) -> None:
    """Makes decisions of the user count so often, each copy an hour earlier than the one before, of another query."""
    for table, name in ((decisions, "id"), (decision_slots, "decision_id")):
        new = {name: EARLIER.format(id=name)}
        new["query_group"] = "query_group + number"  # another query, as far as it counts
        new["created_at"] = "created_at - number * interval '1 hour'"  # so that the time predicts no reward
        columns = [column.name for column in table.c]
        read = [new.get(column, column) for column in columns]
        copy = COPY.format(table=table.name, columns=", ".join(columns), read=", ".join(read))
        await user.rows(f"{copy} RETURNING 1", copies=copies)


@pytest.mark.usefixtures("lots")
async def test_what_was_told_stands_beside_empty_slates_the_default_and_the_last_policy(alice: User):
    case_id = await live(alice, told=1, empty=0)
    async with alice.service.runtime.database.as_user(alice.name, datetime.now(UTC)) as connection:
        await lifecycle.add(connection, alice.name, AGENT, stored("rejected", head()))
    check(await impact(alice), case_id, told=1, says="helped", default_says="did harm")
    async with alice.service.runtime.database.as_user(alice.name, datetime.now(UTC)) as connection:
        worse = text("UPDATE decisions SET reward = 1 - reward WHERE user_sub = :user_sub")
        await connection.execute(worse, {"user_sub": alice.name})
    check(await impact(alice), case_id, told=0, says="did harm", default_says="helped")


def check(said: dict[str, Any], case_id: str, *, told: int, says: str, default_says: str) -> None:
    """Compares the answer with what was lived, where slates with a case earned `told` and empty ones the rest of 1."""
    first, default, last = said["differences"]
    assert (default["less"], default["policy_version"]) == ("the default", "replay-1")
    assert default["says"] == default_says  # it never leaves a slate empty
    assert (last["less"], last["policy_version"]) == ("the last policy", "q-1")
    assert last["reward"] == default["reward"]  # that policy changes nothing
    assert (first["less"], first["says"], first["decisions"]) == ("an empty slate", says, DECISIONS)
    assert first["slates"] == COPIES * EMPTY
    assert first["reward"]["estimate"] == pytest.approx(0.95 if told else -0.95, abs=0.15)
    assert first["reward"]["low"] <= first["reward"]["estimate"] <= first["reward"]["high"]
    assert first["sentence"].startswith(says)
    assert first["more"] == 0
    told_rewards = TOLD * told + EMPTY * (1 - told)
    assert said["mean_reward"] == pytest.approx(told_rewards / (TOLD + EMPTY))
    useless = [(case["case_id"], case["judged"]) for case in said["never_helped"]]
    assert useless == ([] if told else [(case_id, COPIES * TOLD)])


async def test_nothing_is_claimed_of_a_few_decisions_and_it_is_said_how_many_are_missing(alice: User):
    await alice.retain("water the roses")
    await alice.settle()
    assert (await alice.http.put(f"/v1/profiles/{AGENT}", json={"explore": 0.05})).status_code == 200
    found = await alice.retrieve("water the roses")
    await alice.feedback(retrieval_id=found["retrieval_id"], thumb="up")
    said = await impact(alice)
    assert [each["says"] for each in said["differences"]] == ["cannot say", "cannot say"]
    assert said["differences"][0]["sentence"] == "cannot say yet: 2,000 more rewarded decisions at this rate"
    assert said["differences"][0]["reward"] is None
    assert (said["looked_at"]["decisions"], said["looked_at"]["rewarded"]) == (1, 1)


async def test_no_number_of_decisions_is_told_for_a_policy_whose_slates_were_never_served(alice: User):
    for color, word in (("red", "roses"), ("blue", "lilies")):
        await alice.retain(f"water the {color} {word}", tool_traces=[{"tool": color}])
    await alice.settle()
    async with alice.service.runtime.database.as_user(alice.name, datetime.now(UTC)) as connection:
        other = head(vote=-100, similarity=-100)
        await lifecycle.add(connection, alice.name, AGENT, stored("rejected", other))
    for _ in range(12):
        found = await alice.retrieve("water the red roses", k=1)
        await alice.feedback(retrieval_id=found["retrieval_id"], reward=1)
    last = (await impact(alice))["differences"][-1]
    assert (last["less"], last["decisions"], last["slates"]) == ("the last policy", 12, 0)
    assert (last["more"], last["sentence"]) == (None, "cannot say yet: no realistic number of decisions would tell")


async def test_a_week_tells_what_was_asked_found_reused_and_run_with_memory_and_without(alice: User):
    trace = {"tool": "can", "status": "error", "output": "empty"}
    await alice.retain("water the roses", tool_traces=[trace, {"tool": "can"}])
    await alice.settle()
    for used in ([0], []):
        found = await alice.retrieve("water the roses")
        cases = [found["cases"][place]["case_id"] for place in used]
        more = {"retrieval_id": found["retrieval_id"], "used_case_ids": cases, "reward": 1, "reward_source": "user"}
        await alice.retain(f"water {len(used)} roses", tool_traces=[{"tool": "can"}], **more)
    await alice.retrieve("water the roses", memory=False)
    await alice.settle()
    (week,) = (await impact(alice))["weeks"]
    assert (week["decisions"], week["hit_rate"], week["reuse_rate"]) == (3, 1, 0.5)
    assert week["mean_tokens"] > 0
    assert (week["with_memory"]["runs"], week["without_memory"]["runs"]) == (2, 1)
    assert (week["with_memory"]["steps"], week["with_memory"]["errors"], week["with_memory"]["reward"]) == (1, 0, 1)
    assert (week["without_memory"]["steps"], week["without_memory"]["errors"]) == (2, 1)


async def test_procedures_that_put_things_right_are_listed_by_what_they_earned(alice: User):
    fixed = [
        {"tool": "can", "status": "error", "output": "empty", "input": {"water": 0}},
        {"tool": "can", "input": {"water": 1}},
    ]
    await alice.retain("water the roses", tool_traces=fixed, reward=1, reward_source="user")
    await alice.settle()
    assert (await impact(alice))["put_right"] == []
    found = await alice.retrieve("water the roses")
    (told,) = found["procedures"]
    more = {"retrieval_id": found["retrieval_id"], "used_procedure_ids": [told["id"]]}
    await alice.retain("water the roses", tool_traces=[{"tool": "can"}], reward=1, reward_source="user", **more)
    await alice.settle()
    (first,) = (await impact(alice))["put_right"]
    assert (first["procedure_id"], first["uses"], first["use_reward"]) == (told["id"], 1, 1)
    assert first["name"]


async def test_decisions_outside_the_span_do_not_count(alice: User):
    await alice.retain("water the roses")
    await alice.settle()
    found = await alice.retrieve("water the roses")
    await alice.feedback(retrieval_id=found["retrieval_id"], thumb="up")
    now = datetime.now(UTC)
    spans = [
        {"since": now + timedelta(hours=1)},
        {"until": now - timedelta(hours=1)},
        {"since": now - timedelta(hours=1)},
    ]
    counted = [await impact(alice, **span) for span in spans]
    assert [said["looked_at"]["decisions"] for said in counted] == [0, 0, 1]


async def test_runs_outside_the_span_are_in_no_week(alice: User):
    await alice.retain("water the roses")
    await alice.settle()
    now, hour = datetime.now(UTC), timedelta(hours=1)
    spans = [{"since": now + hour}, {"until": now - hour}, {"since": now - hour, "until": now + hour}]
    told = [await impact(alice, **span) for span in spans]
    assert [[week["without_memory"]["runs"] for week in said["weeks"]] for said in told] == [[], [], [1]]


async def test_a_span_that_ends_years_from_now_has_the_last_weeks(alice: User):
    await alice.retain("water the roses")
    await alice.settle()
    (week,) = (await impact(alice, until="9999-12-31T23:59:59Z"))["weeks"]
    assert week["without_memory"]["runs"] == 1


async def test_a_policy_is_compared_by_the_newest_decisions_of_the_span(alice: User):
    await alice.retain("water the roses")
    await alice.settle()
    found = await alice.retrieve("water the roses")
    await alice.feedback(retrieval_id=found["retrieval_id"], thumb="up")
    now = datetime.now(UTC)
    await copy(alice, MOST_FOR_POLICIES + 20)  # one for each hour before
    said = await impact(alice, until=now - timedelta(hours=MOST_FOR_POLICIES + 10))
    assert [each["decisions"] for each in said["differences"]] == [11, 11]


async def test_the_impact_of_an_unknown_agent_or_of_anothers_is_not_there(alice: User, bob: User):
    await alice.retain("water the roses")
    answer = await bob.http.get("/v1/impact", params={"agent": AGENT})
    assert answer.status_code == 404
    assert (await alice.http.get("/v1/impact")).status_code == 422


async def test_a_case_that_does_not_decrypt_says_so_and_hides_no_other(alice: User):
    tasks = ["paint the north wall", "water the roses"]
    good, bad = [await alice.retain(task) for task in tasks]
    await alice.settle()
    for task in tasks * LEAST_JUDGED:
        await alice.feedback(retrieval_id=(await alice.retrieve(task))["retrieval_id"], reward=0)
    await alice.damage("cases", "words", f"id = '{bad}'")
    never_helped = (await impact(alice))["never_helped"]
    assert {case["case_id"]: case["task"] for case in never_helped} == {good: tasks[0], bad: UNREADABLE}
