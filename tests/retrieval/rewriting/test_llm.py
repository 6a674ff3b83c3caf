"""Queries by a model: one line, or the query as it was."""

from typing import Any

import pytest

from retrieval.errors import ModelBudgetSpent, ModelMisbehaved, ModelRefused, ModelUnavailable, Tokens
from retrieval.ports import Reply, Rewritten
from retrieval.rewriting.llm import LlmRewriter, Query


class Says:
    def __init__(self, outcome: Any) -> None:
        self.outcome = outcome

    async def ask(self, _instructions: str, _material: Any, answer: Any) -> Any:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return Reply(answer.model_validate({"query": self.outcome}), Tokens(1, 1))


async def test_a_model_writes_one_line():
    rewritten = await LlmRewriter(Says(" How to \n pay ")).rewrite("please pay")
    assert rewritten == Rewritten("How to pay", "llm")


@pytest.mark.parametrize("error", [ModelUnavailable, ModelRefused, ModelMisbehaved, ModelBudgetSpent])
async def test_a_model_that_fails_leaves_the_query_and_says_so(error: type[Exception]):
    assert await LlmRewriter(Says(error("no"))).rewrite("please pay") == Rewritten("please pay", degraded=True)


@pytest.mark.parametrize("said", ["", " \n ", "…!", "x" * 1_000])
def test_a_model_must_say_something_and_not_too_much(said: str):
    with pytest.raises(ValueError, match="query"):
        Query.model_validate({"query": said})
