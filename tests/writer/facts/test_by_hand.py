"""A fact written by hand: a value that is a secret is taken out, whichever field tells that it is one."""

from datetime import UTC, datetime

import asyncpg
import pytest

from tests.writer.blocked import begin_blocked
from tests.writer.conftest import Bank
from writer.facts.by_hand import FactWritten, write_fact
from writer.profiles import lock_profile, open_for_writing

SECRET = "S3cretPw9x"


def written(text: str, **more: str) -> tuple[str, str | None]:
    fact = FactWritten.model_validate({"agent": "home", "kind": "fact", "text": text, **more})
    return fact.text, fact.value


@pytest.mark.parametrize(
    "more",
    [
        {"attribute": "wifi password"},
        {"attribute": "Password:"},
        {"subject": "wifi password"},
        {"subject": "API", "attribute": "key"},
        {"subject": "Ada's laptop", "attribute": "password"},
    ],
)
@pytest.mark.parametrize("value", [SECRET, "sunshine"])
def test_a_value_that_its_attribute_or_subject_tells_to_be_a_secret_is_in_no_field(more: dict[str, str], value: str):
    text, kept = written(f"the wifi takes {value}, not {value}s", value=value, **more)
    assert kept in {"[REDACTED:password]", "[REDACTED:token]"}
    assert text == f"the wifi takes {kept}, not {value}s"


@pytest.mark.parametrize("text", ["the wifi password is {}.", "wifi password: {}", "the door's pin is 4821 ({})"])
def test_a_value_that_is_taken_out_of_the_text_is_no_value_either(text: str):
    value = "4821" if "pin" in text else SECRET
    _, kept = written(text.format(value), value=value)
    assert kept in {"[REDACTED:password]", "[REDACTED:pin]"}


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("write to ada@example.org", {"attribute": "name", "value": "ada"}),
        ("the wifi password is changed monthly", {"attribute": "wifi password policy", "value": "monthly"}),
        ("I want to pass the bar exam", {"attribute": "pass", "value": "bar exam"}),
        ("my goal is to save 500 EUR", {"attribute": "save", "value": "500"}),
        ("the pin is 4821, the room is 482", {"attribute": "room", "value": "482"}),
    ],
)
def test_another_value_stays(text: str, more: dict[str, str]):
    assert written(text, **more)[1] == more["value"]


async def test_a_first_fact_and_another_first_write_of_an_agent_wait_for_each_other_in_one_order(
    bank: Bank, owner: asyncpg.Connection, user: str
):
    await bank.add(user, {})  # the user's key is there, the agent's profile is not
    fact = FactWritten.model_validate({"agent": "new", "kind": "fact", "text": "the wifi is slow"})
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:  # as an entry of knowledge is written
        await lock_profile(connection, user, "new")
        writing = await begin_blocked(owner, write_fact(bank.database, bank.keyring, fact, bank.author(user)))
        await open_for_writing(connection, user, "new")
    await writing
