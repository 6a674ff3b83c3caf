"""The policy page says when policies are trained."""

import httpx
import pytest

from app.console.routes.policy import training_note
from tests.service import AGENT, User


@pytest.mark.parametrize(
    ("every_s", "told"),
    [(86_400, "every 24 hours"), (0, "only by the command “casebank train”")],
)
def test_the_note_says_when_policies_are_trained(every_s: float, told: str):
    assert told in training_note(every_s)


async def test_the_policy_page_has_the_note(alice: User, console: httpx.AsyncClient):
    await alice.retain("water the garden")
    await alice.http.put(f"/v1/profiles/{AGENT}", json={"canary": 0.2})
    settings = alice.service.settings
    text = (await console.get("/console/policy", params={"agent": AGENT})).text
    assert training_note(settings.train_every_s) in text
    assert "tonight" not in text


async def test_where_trials_are_off_the_policy_page_promises_no_training(alice: User, console: httpx.AsyncClient):
    await alice.retain("water the garden")
    for settings in ({"canary": 0}, {"canary": 0.2, "learning": False}):
        await alice.http.put(f"/v1/profiles/{AGENT}", json=settings)
        text = (await console.get("/console/policy", params={"agent": AGENT})).text
        assert "No policy is trained or checked" in text
        for words in ("first training needs", "the first needs", "every 24 hours"):
            assert words not in text, words
