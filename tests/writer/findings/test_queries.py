"""When two queries ask for the same."""

import pytest

from writer.findings.queries import exact_key, question_key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("How are secrets redacted?", "please tell me how a secret is redacted"),
        ("where is redact_text defined", "Where's redact_text defined?"),
        ("What is the retry limit of the queue?", "the queue's retry limit"),
        ("find the tests of retain", "retain tests"),
        ("I want to know where leases are renewed", "where the lease is renewed"),
        ("how isn't it stored", "how is it not stored"),
        ("limits  of\nUSERS", "users' limits"),
        ("What is VectorStore?", "VectorStore"),
        ("VectorStore interface", "the class VectorStore"),
    ],
)
def test_other_words_for_the_same_are_the_same_question(one: str, other: str):
    assert question_key(one).key == question_key(other).key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("enable the limits of users", "disable the limits of users"),
        ("how are secrets redacted", "why are secrets redacted"),
        ("how are secrets redacted", "how are secrets not redacted"),
        ("how are secrets redacted", "how are secrets redacted in tests"),
        ("convert a run to a case", "convert a case to a run"),
        ("what runs before the worker", "what runs after the worker"),
        ("where is redact_text defined", "where is redact defined"),
        ("where is search implemented", "where is list implemented"),
        ("limits in version 1.2", "limits in version 1.3"),
        ("error 404 of the route", "error 500 of the route"),
        ("with a lease token", "without a lease token"),
        ("def retain", "def retain\\("),
        ("Retain", "retain"),
        ("VectorStore tests", "VectorStore"),
        ("interface of the type", "interface"),
        ("", " x"),
    ],
)
def test_other_words_for_something_else_are_another_question(one: str, other: str):
    assert question_key(one).key != question_key(other).key


def test_a_pattern_asks_for_itself_to_the_letter():
    assert exact_key("def  x") != exact_key("def x")
    assert question_key("foo.*bar baz") == exact_key("foo.*bar baz")


def test_queries_have_words_in_common_as_far_as_they_are_near():
    one, other = (question_key(text).terms for text in ("limits of a user", "limits of an agent"))
    assert len(one & other) == 1


@pytest.mark.parametrize(
    "text", ["", " ", "?" * 10_000, "1" * 4_000 + "!", "a " * 5_000, "\x00", "ünïcode wörter hier"]
)
def test_any_text_is_a_query(text: str):
    assert question_key(text).key
