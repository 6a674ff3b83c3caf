"""Texts as they are compared and cut."""

from hypothesis import given
from hypothesis import strategies as st

from retrieval.text import folded, shortened


@given(st.text(), st.integers(1, 30))
def test_a_shortened_text_is_whole_or_ends_in_an_ellipsis_at_its_longest(text: str, longest: int):
    short = shortened(text, longest)
    assert short == text if len(text) <= longest else (len(short) == longest and short.endswith("…"))
    assert text.startswith(short.removesuffix("…") if short != text else text)


def test_case_and_white_space_do_not_tell_texts_apart():
    assert folded(" Water  the\nGARDEN ") == folded("water the garden")


def test_folding_twice_changes_nothing():
    assert folded(folded("Straße  İ")) == folded("Straße  İ")
