"""Estimated tokens against the counts of three tokenizers, over texts that the weights were not fitted to."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.tokens import count_tokens, hundredths

COUNTED = json.loads((Path(__file__).parent / "data" / "token_counts.json").read_text())
TOKENIZERS = ("o200k_base", "cl100k_base", "claude")


@pytest.mark.parametrize("counted", COUNTED, ids=lambda counted: f"{counted['kind']}, {len(counted['text'])} chars")
def test_an_estimate_is_at_most_a_tenth_below_each_tokenizer_and_two_fifths_above_the_highest(counted: dict[str, int]):
    estimate, counts = count_tokens(str(counted["text"])), [counted[name] for name in TOKENIZERS]
    assert 0.9 * max(counts) <= estimate <= 1.41 * max(counts)


@given(st.text(), st.text())
def test_a_longer_text_never_has_fewer_tokens_and_two_texts_no_fewer_than_one(one: str, other: str):
    whole = count_tokens(f"{one}\n{other}")
    assert max(count_tokens(one), count_tokens(other)) <= whole <= count_tokens(f"{one}\n") + count_tokens(other) + 1
    assert count_tokens("") == 0


@given(st.text(), st.text())
def test_lines_are_counted_one_by_one_as_the_text_of_all_of_them(one: str, other: str):
    assert hundredths(f"{one}\n{other}") == hundredths(f"{one}\n") + hundredths(other)


@pytest.mark.parametrize("text", ["The order W1042 was refunded. ", "customerId=7f3a-11, ", "退款已经处理。"])
def test_a_text_of_29_000_characters_is_counted_in_a_moment(text: str):
    whole, times = (text * 29_000)[:29_000], []
    for _ in range(5):
        started = time.perf_counter()
        count_tokens(whole)
        times.append(time.perf_counter() - started)
    assert min(times) < 0.005
