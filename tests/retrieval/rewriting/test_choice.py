"""Which rewriter a profile has chosen: remembered for a while."""

from typing import Any

from retrieval.rewriting.choice import KNOWN_FOR_S, Rewriting, known_choices
from tests.clock import Clock

NOWHERE: Any = None  # remembering needs no database


def test_a_choice_is_known_for_a_while_and_forgotten_on_request():
    clock = Clock()
    known = known_choices(timer=clock)
    rewriting = Rewriting(NOWHERE, _known=known)
    rewriting.learn("ada", "agent", "llm")
    assert known.get(("ada", "agent")) == "llm"
    assert known.get(("bob", "agent")) is None
    clock.now = KNOWN_FOR_S
    assert known.get(("ada", "agent")) is None
    rewriting.learn("ada", "agent", "off")
    rewriting.learn("ada", "agent", None)
    assert known.get(("ada", "agent")) is None


def test_only_the_latest_choices_are_remembered():
    known = known_choices(capacity=2, timer=Clock())
    rewriting = Rewriting(NOWHERE, _known=known)
    for user in ("ada", "bob", "ada", "eve"):
        rewriting.learn(user, "agent", "llm")
    assert [known.get((user, "agent")) for user in ("ada", "bob", "eve")] == ["llm", None, "llm"]
