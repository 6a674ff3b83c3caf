"""A profile's tokens of the day: counted with every call, and nobody is asked when they are used up."""

from dataclasses import dataclass, field

import pytest
from pydantic import BaseModel, JsonValue

from retrieval.errors import ModelBudgetSpent, ModelUnavailable, Tokens
from retrieval.ports import Reply
from tests.writer.conftest import AGENT, Bank
from writer.procedures.llm.token_budget import Account, by_day


class Said(BaseModel):
    """An answer."""

    word: str


@dataclass
class Model:
    """Answers with a word, at a price."""

    tokens: Tokens
    down: bool = False
    asked: list[JsonValue] = field(default_factory=list)

    async def ask(self, instructions: str, material: JsonValue, answer: type[BaseModel]) -> Reply[BaseModel]:
        self.asked.append(material)
        if self.down:
            error = ModelUnavailable(instructions)
            error.tokens = self.tokens
            raise error
        return Reply(answer(word="yes"), self.tokens)


async def test_calls_are_added_to_the_account_of_the_day_failed_ones_as_well(bank: Bank, user: str):
    await bank.add(user, {})
    account = Account(bank.database, 1_000)
    for model in (Model(Tokens(10, 5)), Model(Tokens(3, 0), down=True)):
        metered = account.model(model, bank.profile(user), "revise")
        try:
            assert (await metered.ask("?", "it", Said)).answer == Said(word="yes")
        except ModelUnavailable:
            assert model.down
    (row,) = await bank.read(user, by_day(user, AGENT, 1))
    assert (row.purpose, row.calls, row.failures, row.prompt_tokens, row.completion_tokens) == ("revise", 2, 1, 13, 5)


async def test_a_model_is_not_asked_when_the_days_tokens_are_used_up(bank: Bank, user: str):
    await bank.add(user, {})
    model = Model(Tokens(10, 5))
    metered = Account(bank.database, 15).model(model, bank.profile(user), "analyse")
    await metered.ask("?", "first", Said)
    with pytest.raises(ModelBudgetSpent):
        await metered.ask("?", "second", Said)
    assert model.asked == ["first"]
    await bank.set_profile(user, llm_tokens_per_day=16)
    await metered.ask("?", "third", Said)
    assert model.asked == ["first", "third"]
