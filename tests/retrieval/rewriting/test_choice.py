"""Queries by a model: one line, or the query as it was."""

from typing import Any

import pytest

from retrieval.errors import ModelBudgetSpent, ModelMisbehaved, ModelRefused, ModelUnavailable, Tokens
from retrieval.ports import Reply
from retrieval.rewriting.choice import Query, Rewritten, named, rewritten_by


class Says:
    def __init__(self, outcome: Any) -> None:
        self.outcome = outcome

    async def ask(self, _instructions: str, _material: Any, answer: Any) -> Any:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return Reply(answer.model_validate({"query": self.outcome}), Tokens(1, 1))


async def test_a_model_writes_one_line():
    rewritten = await rewritten_by(Says(" How to \n pay "), "please pay")
    assert rewritten == Rewritten("How to pay", "llm")


@pytest.mark.parametrize("error", [ModelUnavailable, ModelRefused, ModelMisbehaved, ModelBudgetSpent])
async def test_a_model_that_fails_leaves_the_query_and_says_so(error: type[Exception]):
    assert await rewritten_by(Says(error("no")), "please pay") == Rewritten("please pay", degraded=True)


@pytest.mark.parametrize("said", ["", " \n ", "…!", "x" * 1_000])
def test_a_model_must_say_something_and_not_too_much(said: str):
    with pytest.raises(ValueError, match="query"):
        Query.model_validate({"query": said})


TWO = "Hi, run_migration stops with ORA-00942. And could you renew the TLS certificate with certbot.timer? Thanks, Anna"


@pytest.mark.parametrize(
    ("said", "query"),
    [
        ("How to fix run_migration with ORA-00942 and renew a TLS certificate by certbot.timer", ""),
        ("How to fix run_migration with ORA-00942", ", TLS, certbot.timer"),
        ("How to renew a tls certificate by certbot.timer", ", run_migration, ORA-00942"),
        ("How to " + "x" * 380, ", ORA-00942"),
    ],
)
async def test_what_the_message_names_and_the_model_dropped_is_appended_as_far_as_it_fits(said: str, query: str):
    assert await rewritten_by(Says(said), TWO) == Rewritten(said + query, "llm")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("`git push` fails with exit 128 on HEAD", ["git push", "HEAD"]),
        ("a ValueError of parseDate in app.py, then 503", ["ValueError", "parseDate", "app.py", "503"]),
        ("ERROR: 42P01 in psycopg2, use --no-verify", ["ERROR", "42P01", "psycopg2", "--no-verify"]),
        ("I am Anna Smith, ann.smith@example.com, order 48213, [REDACTED:phone], https://a.example/x_y", []),
        ("Please compare my workouts. Then plan a run for Sunday!", []),
    ],
)
def test_tools_errors_and_technologies_are_named_and_persons_and_orders_are_not(text: str, names: list[str]):
    assert named(text) == names
