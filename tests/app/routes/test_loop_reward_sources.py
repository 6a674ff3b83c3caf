"""Who may say what of a reward: a user's own token speaks for the user, a service's for whoever judges."""

from typing import Any

import pytest

from tests.service import AGENT, User

JUDGES = ["judge", "metric"]
REFUSED = (403, "urn:casebank:problem:reward-source-not-allowed")


async def posted(user: User, path: str, **body: Any) -> tuple[int, str]:
    answer = await user.http.post(path, json=body)
    return answer.status_code, answer.json().get("type", "")


@pytest.mark.parametrize("source", JUDGES)
async def test_a_users_own_token_may_not_retain_a_reward_of_a_judge_or_a_metric(source: str, alice: User):
    body = {"agent": AGENT, "task": "water the garden", "reward": 1.0, "reward_source": source}
    assert await posted(alice, "/v1/retain", **body) == REFUSED
    assert await alice.cases() == []


@pytest.mark.parametrize("source", JUDGES)
async def test_a_users_own_token_may_not_give_feedback_as_a_judge_or_a_metric(source: str, alice: User):
    case_id = await alice.retain("water the garden")
    assert await posted(alice, "/v1/feedback", case_id=case_id, reward=0.0, source=source) == REFUSED
    assert (await alice.case(case_id))["reward"] == 1


@pytest.mark.parametrize("source", ["user", "heuristic", None])
async def test_a_users_own_token_may_speak_for_the_user_and_for_the_run_itself(source: str | None, alice: User):
    case = await alice.case(await alice.retain("water the garden", reward=0.25, reward_source=source))
    assert (case["reward"], case["reward_source"]) == (0.25, source or "heuristic")
    given = {} if source is None else {"source": source}
    assert (await alice.feedback(case_id=case["case_id"], reward=0.5, **given))["source"] == source or "user"


@pytest.mark.parametrize("source", ["user", "heuristic", None, *JUDGES])
async def test_a_service_may_say_whoever_judged(source: str | None, alice: User):
    backend = await alice.backend()
    case = await alice.case(await backend.retain("water the garden", reward=0.25, reward_source=source))
    assert case["reward_source"] == (source or "heuristic")
    judged = await backend.feedback(case_id=case["case_id"], reward=0.5, source=source or "user")
    assert judged["source"] in {source, "user"}


async def test_a_service_that_acts_for_its_own_name_is_a_service(alice: User):
    token = alice.service.token(alice.name, scope="casebank:act-as")
    http = await alice.service.http(token)
    http.headers["X-Casebank-User"] = alice.name
    own = User(alice.name, alice.service, http)
    await own.retain("water the garden", reward=0.5, reward_source="metric")
