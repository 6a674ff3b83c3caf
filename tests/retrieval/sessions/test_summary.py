"""Lines of a session that a summary quotes."""

import time
from datetime import UTC, datetime

import pytest

from retrieval.sessions.messages import SessionTurn
from retrieval.sessions.summary import items_of

NOW = datetime(2026, 3, 2, tzinfo=UTC)


def quoted(text: str) -> list[tuple[str, str]]:
    """Returns the kinds and texts that a summary may quote of an assistant's turn."""
    return [(item.kind, item.text) for item in items_of(SessionTurn(1, NOW, {"role": "assistant", "content": text}))]


def test_commands_decisions_and_values_are_quoted():
    text = "I ran it:\n  $ make test\nWe decided to keep Postgres. The sun shines. See app/main.py for it."
    assert quoted(text) == [
        ("command", "make test"),
        ("decided", "We decided to keep Postgres."),
        ("value", "See app/main.py for it."),
    ]


@pytest.mark.parametrize("filler", ["\n", "a-", "word "])
def test_a_turn_of_much_text_without_a_sentence_is_read_in_a_moment(filler: str):
    started = time.process_time()
    assert quoted(filler * 20_000) == []
    assert time.process_time() - started < 5  # a search from each character takes half a minute
