"""Over HTTP: what `memory_context` tells beside the slate."""

import pytest

from tests.service import User

QUERY = "Set the colour of vehicle 7 to amber"
WAYS = ("spell the name as the catalog does", "put the schema in front", "put the text in single quotes")


async def bank(user: User) -> dict[str, str]:
    """Retains two runs with one plan, one of each other way as near as these, and a failure; returns ids by plan."""
    for number in (1, 2):
        await user.retain(f"Set the colour of vehicle {number} to amber", plan=[f"add type {number}"])
    ids = {way: await user.retain("Set the colour of vehicle 1 to amber", plan=[way]) for way in WAYS}
    ids["failure"] = await user.retain(QUERY, plan=["lock the table"], outcome="failure")
    await user.settle()
    return ids


async def test_a_failure_and_other_ways_are_told_beside_a_full_slate(alice: User):
    ids = await bank(alice)
    told = await alice.retrieve(QUERY, k=2)
    on_slate = {case["case_id"] for case in told["cases"]}
    assert len(on_slate) == 2
    assert told["others"][0]["case_id"] == ids["failure"]
    assert told["others"][0]["outcome"] == "failure"
    plans = [tuple(each["plan"]) for each in told["others"][1:]]
    assert len(plans) == 1
    assert set(plans) <= {(way,) for way in WAYS} | {("add type 1",), ("add type 2",)}
    assert not {tuple(case["plan"]) for case in told["cases"]} & set(plans)
    for other in told["others"]:
        assert f'"{other["task"]}"' in told["memory_context"]
        assert other["case_id"] not in on_slate
    parts = {part["part"]: part["shown"] for part in told["parts"]}
    assert (parts["cases"], parts["others"]) == (2, len(told["others"]))


async def test_a_request_may_do_without_others(alice: User):
    await bank(alice)
    told = await alice.retrieve(QUERY, k=2, others=False)
    assert told["others"] == []
    assert "Further runs" not in told["memory_context"]


@pytest.mark.parametrize("budget", [60, 120, 180, 240, 300])
async def test_only_those_are_answered_that_there_was_room_for(alice: User, budget: int):
    await bank(alice)
    told = await alice.retrieve(QUERY, k=2, token_budget=budget)
    assert told["tokens"] <= budget
    shown = {part["part"]: part["shown"] for part in told["parts"]}
    assert len(told["others"]) == shown.get("others", 0)


async def test_nobody_is_credited_for_a_run_that_was_told_beside_the_slate(alice: User):
    ids = await bank(alice)
    told = await alice.retrieve(QUERY, k=2)
    used = [ids["failure"]]
    await alice.retain(QUERY, retrieval_id=told["retrieval_id"], used_case_ids=used, reward=1.0)
    await alice.settle()
    assert (await alice.case(ids["failure"]))["reuse_count"] == 0
