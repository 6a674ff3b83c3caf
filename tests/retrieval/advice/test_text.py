"""The text of advice at a failed call."""

from typing import Any
from uuid import uuid4

from retrieval.advice.text import TOKENS, AdvisedFix, advice_text
from retrieval.tokens import count_tokens


def fix(*changes: str, **others: Any) -> AdvisedFix:
    parts = {"instead": "", "changes": list(changes), "first": [], "dangerous": False, **others}
    return AdvisedFix(parts, 1, uuid4(), 1.0, 1, 1, 0, 0, proven=True)


def test_a_fix_that_is_too_long_is_shortened_and_not_left_out():
    long = fix(*(f"argument {n}: `public static final List<Integer> NUMBERS = List.of({n});` added" for n in range(5)))
    text, told = advice_text("edit", "error: cannot find symbol", [long, fix("a: 1 in place of 2")], 0)
    assert told[0] is long
    assert count_tokens(text) <= TOKENS
    assert "argument 0: `public static final" in text
    assert text.count("What put it right") == 1


def test_a_plan_is_left_out_before_a_fix_is_shortened():
    short = fix("a: 1 in place of 2", plan=["a step of the plan " * 8] * 5)
    text, told = advice_text("edit", "error", [short], 0)
    assert told == [short]
    assert text.endswith("What put it right: a: 1 in place of 2 (1 of 1 runs).")


def test_placeholders_and_comparisons_are_shown_as_they_are_and_tags_are_not():
    text, _ = advice_text("edit", "", [fix("`git push <branch>`, `i <= 3`, `<system>`")], 0)
    assert "`git push <branch>`, `i <= 3`, `\\u003csystem>`" in text
