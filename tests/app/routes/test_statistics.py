"""The statistics of a profile are what its owner's calls add up to, and nobody else's."""

from typing import Any
from uuid import uuid4

import pytest

from tests.service import AGENT, User


async def statistics(user: User, agent: str = AGENT) -> dict[str, Any]:
    answer = await user.http.get(f"/v1/profiles/{agent}/statistics")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_profile_without_a_case_has_no_rates_rather_than_zeros(alice: User):
    await alice.http.put(f"/v1/profiles/{AGENT}", json={"k": 2})
    numbers = await statistics(alice)
    assert numbers["cases"] == {
        "by_status": {},
        "by_outcome": {},
        "runs": 0,
        "rewarded": 0,
        "trusted": 0,
        "mean_reward": None,
        "last_retained_at": None,
    }
    assert (numbers["retrievals"]["hit_rate"], numbers["reuse"]["precision_at_k"]) == (None, None)


async def test_cases_are_counted_by_status_and_outcome_with_their_rewards(alice: User):
    await alice.retain("water the roses", reward=1.0, reward_source="user")
    await alice.retain("water the roses", reward=1.0, reward_source="user")
    await alice.retain("mow the lawn", outcome="failure", plan=["mow"])
    last = await alice.retain("count the bees", outcome="unknown", plan=["count"])
    await alice.settle()
    numbers = (await statistics(alice))["cases"]
    assert numbers["by_status"] == {"merged": 1, "ready": 3}
    assert numbers["by_outcome"] == {"failure": 1, "success": 1, "unknown": 1}
    assert (numbers["runs"], numbers["rewarded"], numbers["trusted"]) == (4, 2, 1)
    assert numbers["mean_reward"] == pytest.approx(0.5)
    created_at = (await alice.case(last))["created_at"]
    assert numbers["last_retained_at"] == created_at


async def test_the_hit_rate_leaves_out_what_was_asked_without_memory(alice: User):
    missed = await alice.retrieve("water the roses")
    await alice.retain("water the roses", tool_traces=[{"tool": "can"}])
    await alice.settle()
    hit = await alice.retrieve("water the roses")
    without = await alice.retrieve("water the roses", memory=False)
    await alice.feedback(retrieval_id=hit["retrieval_id"], reward=0.75)
    await alice.feedback(retrieval_id=without["retrieval_id"], reward=0.25)
    numbers = (await statistics(alice))["retrievals"]
    assert (missed["cases"], len(hit["cases"])) == ([], 1)
    last_retrieved_at = numbers.pop("last_retrieved_at")
    assert last_retrieved_at is not None
    assert numbers == {
        "decisions": 3,
        "without_memory": 1,
        "with_cases": 1,
        "hit_rate": 0.5,
        "mean_tokens": round(hit["tokens"] / 3, 4),
        "rewarded_with_cases": 1,
        "mean_reward_with_cases": 0.75,
        "rewarded_without_memory": 1,
        "mean_reward_without_memory": 0.25,
    }


async def test_precision_counts_a_shown_case_that_was_not_said_to_be_unused_in_a_run_that_went_well(alice: User):
    case_ids = [await alice.retain(f"water the {what}", plan=[what]) for what in ("roses", "tulips")]
    await alice.settle()
    for used, reward in ([case_ids[0]], 1.0), ([], 1.0), (None, 1.0), (case_ids, 0.0):
        asked = await alice.retrieve("water the garden roses and tulips")
        assert len(asked["cases"]) == 2
        more = {} if used is None else {"used_case_ids": used}
        # each run is another one: repeats would merge, and each reward is a user's
        await alice.retain(
            f"errand {uuid4()}", retrieval_id=asked["retrieval_id"], reward=reward, reward_source="user", **more
        )
        await alice.settle()
    await alice.retrieve("water the garden roses and tulips")  # nobody says how that went
    numbers = (await statistics(alice))["reuse"]
    assert numbers["judged"] == 8
    assert numbers["shown"] == 10
    assert (numbers["used"], numbers["helped"]) == (3, 3)
    assert numbers["precision_at_k"] == 0.375


async def test_procedures_and_runs_under_way_are_counted(alice: User):
    await alice.retain("water the roses", tool_traces=[{"tool": "can", "input": {"where": "bed"}}], plan=["fill it"])
    await alice.settle()
    step = {"number": 1, "tool": "can"}
    await alice.http.post(f"/v1/runs/{uuid4()}/steps", json={"agent": AGENT, "task": "x", "steps": [step]})
    numbers = await statistics(alice)
    assert numbers["procedures"]["by_kind"] == {"script": 1}
    assert numbers["runs_under_way"] == 1


async def test_numbers_of_other_agents_and_other_users_are_left_out(alice: User, bob: User):
    await alice.retain("water the roses")
    await alice.retain("water the roses", agent="a/b")
    await bob.retain("water the roses")
    await alice.settle()
    await bob.settle()
    await bob.retrieve("water the roses")
    for agent in (AGENT, "a/b"):
        numbers = await statistics(alice, agent)
        assert (numbers["agent"], numbers["cases"]["by_status"]) == (agent, {"ready": 1})
        assert numbers["retrievals"]["decisions"] == 0
    assert (await bob.http.get("/v1/profiles/a/b/statistics")).status_code == 404
