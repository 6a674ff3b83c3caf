"""Rows that were changed in the database, so that they do not decrypt, in a retrieve and in a recall."""

import pytest

from retrieval.sealed import UNREADABLE
from tests.service import AGENT, User


@pytest.mark.parametrize("others", [1, 0])
async def test_a_changed_case_is_left_out_and_hides_no_other(alice: User, others: int):
    good = [await alice.retain("paint the north wall") for _ in range(others)]
    bad = await alice.retain("paint the south wall")
    await alice.settle()
    await alice.damage("cases", "words", f"id = '{bad}'")
    answer = await alice.retrieve("paint the south wall")
    assert [each["case_id"] for each in answer["cases"]] == good
    assert answer["degraded"] == ["unreadable"]
    assert answer["why_empty"] == (None if good else "no case that was found decrypts")
    assert "south" not in answer["memory_context"]


async def test_a_changed_fact_or_turn_hides_nothing_else_of_the_context(alice: User):
    turns = [{"role": "user", "content": f"I want the {colour} wall"} for colour in ("red", "blue")]
    assert (await alice.http.post("/v1/sessions/walls/turns", json={"agent": AGENT, "turns": turns})).status_code == 200
    for thing in ("ladder", "brush"):
        body = {"agent": AGENT, "text": f"I own a {thing}", "kind": "fact"}
        assert (await alice.http.post("/v1/facts", json=body)).status_code == 201
    await alice.settle()
    await alice.damage("turns", "payload", "number = 1")
    await alice.damage("facts", "words", "id = (SELECT max(id::text)::uuid FROM facts WHERE user_sub = :user_sub)")
    answer = await alice.retrieve("paint the wall", session_id="walls")
    assert "blue wall" in answer["memory_context"]
    assert "red wall" not in answer["memory_context"]
    assert UNREADABLE in answer["memory_context"]
    assert ("ladder" in answer["memory_context"]) != ("brush" in answer["memory_context"])
    body = {"agent": AGENT, "query": "which wall do I want, and what do I own"}
    recalled = await alice.http.post("/v1/recall", json=body)
    assert recalled.status_code == 200, recalled.text
    texts = " ".join(each["text"] for each in recalled.json()["memories"])
    assert "blue wall" in texts
    assert "red wall" not in texts
