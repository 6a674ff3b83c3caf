"""The policy page promises a training only where one can run."""

from importlib.util import find_spec

import httpx
import pytest

from app.console.routes.policy import training_note
from tests.service import AGENT, User


@pytest.mark.parametrize(
    ("every_s", "has_torch", "told"),
    [
        (86_400, True, "every 24 hours"),
        (0, True, "only by the command “casebank train”"),
        (86_400, False, "not trained here, because torch is not installed"),
        (0, False, "not trained here, because torch is not installed"),
    ],
)
def test_a_training_is_promised_where_torch_is_installed(*, every_s: float, has_torch: bool, told: str):
    assert told in training_note(every_s, has_torch=has_torch)


async def test_the_policy_page_has_the_note(alice: User, console: httpx.AsyncClient):
    await alice.retain("water the garden")
    settings = alice.service.settings
    text = (await console.get("/console/policy", params={"agent": AGENT})).text
    assert training_note(settings.train_every_s, has_torch=find_spec("torch") is not None) in text
    assert "tonight" not in text
