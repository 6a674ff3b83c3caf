import tracemalloc
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policy.channels import MOST_WORDS, cosine, gain, idf, incidence, likeness, searchable, weight_of_pairs, words
from tests.policy.banks import terms


@settings(deadline=None, max_examples=100)
@given(st.text(max_size=200))
def test_words_are_distinct_and_the_same_in_every_normal_form(text: str):
    found = words(text)
    assert len(set(found)) == len(found) <= MOST_WORDS
    forms = [words(unicodedata.normalize(form, text)) for form in ("NFC", "NFKC")]
    assert forms[0] == forms[1] == words(unicodedata.normalize("NFKC", text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Refund order F9999!", ["refund", "order", "f9999"]),
        ("CAFÉ", ["café"]),
        ("İstanbul", ["istanbul"]),  # folded, the first letter is an i with a dot
        ("ταΐζω", ["ταιζω"]),
        ("\uff32\uff45\uff46und", ["refund"]),  # fullwidth
        ("after the, After THE", ["after", "the"]),
        ("从北京飞到上海", ["从北", "北京", "京飞", "飞到", "到上", "上海"]),
        ("用Docker部署", ["用", "docker", "部署"]),
        ("snake_case", ["snake", "case"]),
        ("", []),
        ("!!! ...", []),
    ],
)
def test_a_text_gives_these_words(text: str, expected: list[str]):
    assert words(text) == expected


def test_letters_with_marks_are_the_same_word_composed_or_not():
    assert words(unicodedata.normalize("NFD", "Müller Ångström")) == words("müller ångström")


def test_of_a_text_of_100_000_words_the_beginning_and_the_end_count():
    found = words(" ".join(f"w{number}" for number in range(100_000)))
    assert len(found) == MOST_WORDS
    assert (found[0], found[-1]) == ("w0", "w99999")


def test_a_text_without_spaces_is_indexed_in_parts():
    assert max(map(len, searchable("a_" * 10_000).split())) == 1_000  # Postgres reads one of 20,000 in 2.5 s


def test_the_cosine_of_a_text_with_itself_is_1_and_without_common_terms_0():
    has, _ = incidence([terms("refund the order"), terms("refund the order"), terms("hello")])
    found = cosine(has[:1], has[1:], np.ones((1, has.shape[1]), np.float32))
    assert found[0].tolist() == pytest.approx([1, 0])


def test_a_text_without_terms_is_near_no_text():
    has, _ = incidence([terms(""), terms("refund")])
    assert cosine(has[:1], has, np.ones((1, has.shape[1]), np.float32)).tolist() == [[0, 0]]


def test_the_likeness_of_texts_is_their_cosine_under_the_idf_of_the_bank():
    bank, query = [terms("refund the order"), terms("cancel the order"), terms("")], terms("refund my order")
    has, _ = incidence([*bank, query])
    expected = cosine(has[3:], has[:3], idf(3.0, has[:3].sum(axis=0))[None])
    assert likeness([query], bank) == pytest.approx(expected)
    assert likeness([query], []).shape == (1, 0)


def test_the_likeness_of_long_texts_needs_no_table_of_all_their_terms():
    texts = list(np.arange(200 * MOST_WORDS, dtype=np.int32).reshape(200, MOST_WORDS))
    tracemalloc.start()
    near = likeness(texts, texts)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert near == pytest.approx(np.eye(200), abs=1e-5)
    assert most < 40e6  # a table of 400 texts and 102,400 terms takes 164 MB


def test_a_rarer_term_has_a_larger_idf():
    found = idf(10.0, np.array([1, 5, 10], np.float32))
    assert found[0] > found[1] > found[2] > 0


def test_a_term_whose_runs_agree_more_than_usual_gains_and_one_whose_runs_agree_less_does_not():
    having, shared = np.array([4, 4, 1], np.float32), np.array([6.0, 1.0, 0.0], np.float32)  # of 6, 6 and 0 pairs
    found = gain(shared, weight_of_pairs(having, having), having, 0.3)
    assert found[0] == pytest.approx(1 * 3 / 5)
    assert found[1:].tolist() == [0, 0]


def test_where_all_plans_are_alike_no_term_gains_by_rounding():
    having, mean = np.array([5.0], np.float32), 1 - 6e-8
    assert gain(np.array([10.0], np.float32), weight_of_pairs(having, having), having, mean)[0] < 1e-3
