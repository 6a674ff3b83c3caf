"""What lies at the edge of what a request may say: the first and the last moments, and names that no line can hold."""

from typing import Any

import pytest

from tests.service import AGENT, User

BEYOND = ("0001-01-01T00:00:00+14:00", "0001-12-31T23:59:59Z", "9999-12-31T23:59:59-14:00")
WITHIN = ("0002-01-01T00:00:00Z", "9999-12-31T23:59:59Z")
FACT = {"agent": AGENT, "kind": "preference", "text": "I like roses"}
TIMES: list[tuple[str, str, dict[str, Any]]] = [
    ("GET", "/v1/decisions", {"since": ...}),
    ("GET", "/v1/decisions", {"until": ...}),
    ("GET", "/v1/impact", {"agent": AGENT, "since": ...}),
    ("GET", "/v1/impact", {"agent": AGENT, "until": ...}),
    ("GET", "/v1/facts", {"as_of": ...}),
    ("POST", "/v1/facts", {**FACT, "valid_from": ...}),
    ("POST", "/v1/facts", {**FACT, "valid_from": "1923-05-01T00:00:00Z", "valid_to": ...}),
    ("POST", "/v1/recall", {"agent": AGENT, "query": "roses", "as_of": ...}),
    ("POST", "/v1/sessions/s/turns", {"agent": AGENT, "turns": [{"role": "user", "content": "roses", "time": ...}]}),
    ("POST", "/v1/users/begin-again", {"erased_at": ...}),
]


def filled(said: Any, moment: str) -> Any:
    """What is said, with the moment in the place of the dots."""
    if isinstance(said, dict):
        return {name: filled(each, moment) for name, each in said.items()}
    if isinstance(said, list):
        return [filled(each, moment) for each in said]
    return moment if said is ... else said


async def asked(user: User, method: str, path: str, said: dict[str, Any]) -> int:
    by = {"params": said} if method == "GET" else {"json": said}
    answer = await user.http.request(method, path, **by)
    return answer.status_code


@pytest.mark.parametrize(("method", "path", "said"), TIMES, ids=[f"{path} {[*said][-1]}" for _, path, said in TIMES])
async def test_a_moment_of_a_year_that_utc_does_not_have_is_refused_and_the_last_ones_are_not(
    method: str, path: str, said: dict[str, Any], alice: User
):
    await alice.retain("water the roses")
    assert [await asked(alice, method, path, filled(said, each)) for each in BEYOND] == [422] * len(BEYOND)
    for each in WITHIN:
        assert await asked(alice, method, path, filled(said, each)) < 500


@pytest.mark.parametrize("name", ["a\nb", "\x1b[31mred", "bell\x07", "\x9b31m", "\x7f"], ids=ascii)
async def test_an_agents_name_with_a_control_character_is_refused(name: str, alice: User):
    body = {"agent": name, "task": "water the roses", "outcome": "success"}
    assert await asked(alice, "POST", "/v1/retain", body) == 422
    assert await asked(alice, "POST", "/v1/retrieve", {"agent": name, "query": "roses"}) == 422
