"""What kind of thing a task asks for."""

import pytest

from writer.analysis.query_kind import query_kind, verb_of


@pytest.mark.parametrize(
    ("task", "kind"),
    [
        ("Add a last_name column to the users table", "create"),
        ("Please cancel my order #W123", "remove"),
        ("I want to exchange a shirt for a larger size", "change"),
        ("Could you fix the failing build?", "repair"),
        ("Restart the web server", "run"),
        ("Look up the weather in Oslo", "find"),
        ("Why did the nightly backup fail?", "question"),
        ("Lösche die alten Backups", "remove"),
        ("Tea?", "question"),
        ("\u200b", "other"),
        ("", "other"),
        ("Add " * 100_000, "create"),
    ],
)
def test_a_task_asks_for_what_its_first_verb_says(task: str, kind: str):
    assert query_kind(task) == kind


def test_the_verb_of_a_task_without_one_is_that_of_the_last_step_that_has_one():
    assert verb_of("Please cancel my order and send it back", ["open it"]) == "cancel"
    assert verb_of("The summer party", ["find dates", "book a place", "hurray"]) == "book"
    assert verb_of("Tea?", []) == "question"
