"""Facts are read in the ways in which people write to a chat; the sentences were written before the rules."""

import json
from datetime import date
from pathlib import Path

import pytest

from tests.writer.facts.stated import stated
from writer.facts.draft import FactDraft

MONDAY = date(2026, 3, 2)
SENTENCES = json.loads((Path(__file__).parent / "data" / "chat_sentences.json").read_text())
LEAST_RECALL, LEAST_PRECISION = 0.8, 0.9


def told(text: str) -> list[tuple[str, str, str]]:
    return [(each.attribute, each.value, each.unit) for each in stated(text, MONDAY)]


def is_expected(draft: FactDraft, facts: list[list[str]]) -> bool:
    said = draft.value.casefold()
    return any(
        draft.kind == kind and value.casefold() in said and unit in ("", draft.unit) for kind, value, unit in facts
    )


def test_four_in_five_facts_of_a_hundred_chat_sentences_are_read_and_nine_in_ten_are_right():
    read = [(draft, line["facts"]) for line in SENTENCES for draft in stated(line["text"], MONDAY)]
    right = sum(is_expected(draft, facts) for draft, facts in read)
    assert len(SENTENCES) >= 100
    assert right / sum(len(line["facts"]) for line in SENTENCES) >= LEAST_RECALL
    assert right / len(read) >= LEAST_PRECISION


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("i live in Berlin", "Berlin"),
        ("I live in berlin", "berlin"),
        ("my name is bob", "bob"),
        ("i'm vegetarian", "vegetarian"),
        ("im vegetarian", "vegetarian"),
        ("i love sushi", "sushi"),
        ("I live in Berlin 🙂", "Berlin"),
        ("I live in Berlin :)", "Berlin"),
        ("I live in Berlin btw", "Berlin"),
        ("FYI: I live in Berlin.", "Berlin"),
        ("Note: I live in Oslo.", "Oslo"),
        ("- I live in Berlin", "Berlin"),
        ("* I live in Berlin", "Berlin"),
        ("1. I live in Berlin", "Berlin"),
        ("**I live in Berlin.**", "Berlin"),
        ("_I live in Berlin_", "Berlin"),
        ("I live in Berlin", "Berlin"),
        ("I love sushi!!!", "sushi"),
        ("I\u2019m vegetarian.", "vegetarian"),
        ("Call me Bob", "Bob"),
        ("My favorite team is PSV now.", "PSV"),
        ("My new favorite team is PSV.", "PSV"),
        ("I live in St. Louis.", "St. Louis"),
        ("I live in Washington, D.C.", "Washington, D.C"),
        ("I moved from Berlin to Lisbon.", "Lisbon"),
        ("I've moved to Lisbon.", "Lisbon"),
        ("I've just moved to Lisbon", "Lisbon"),
        ("we've moved to lisbon", "lisbon"),
        ("I live in Berlin, what should I see there?", "Berlin"),
        ("I'm vegetarian. What can I cook?", "vegetarian"),
    ],
)
def test_case_emoji_fillers_and_marks_of_lists_do_not_hide_a_fact(text: str, value: str):
    assert [each[1] for each in told(text)] == [value]


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (
            "I'm Fiona, I'm vegetarian and I live in Lisbon. My budget is 900 euros.",
            [("name", "Fiona", ""), ("diet", "vegetarian", ""), ("home", "Lisbon", ""), ("budget", "900", "EUR")],
        ),
        ("Hi, I'm Lars and live in Malmö", [("name", "Lars", ""), ("home", "Malmö", "")]),
        ("I live in Oslo, but I work at Equinor.", [("home", "Oslo", ""), ("employer", "Equinor", "")]),
        ("A few things about me:\n- I live in Oslo.\n- I'm vegan.", [("home", "Oslo", ""), ("diet", "vegan", "")]),
        ("I live in Oslo and could use some help.", [("home", "Oslo", "")]),
    ],
)
def test_each_clause_of_a_sentence_is_read(text: str, facts: list[tuple[str, str, str]]):
    assert told(text) == facts


@pytest.mark.parametrize(
    "text",
    [
        "i'm fine",
        "I'm German.",
        "I'm Catholic and I'm tired.",
        "I live in fear",
        "i live in a small house",
        "i work at night",
        "I work for myself",
        "i moved to linux",
        "Call me tomorrow",
        "call me when you are done",
        "Enjoy Paris!",
        "Live in the moment.",
        "Love, Anna",
        "I live in Berlin, right?",
        "I have no idea.",
        "My name is on the list",
        "I'm Done",
        "im so done with this",
        "I love u",
        "I need to go",
        "I'm here, what now?",
        "We moved to AWS",
        "I moved to Gmail",
        "I moved to Sales.",
        "I live in Excel.",
        "Please call me ASAP.",
        "Call me Monday.",
        "Please call me Friday, I have time then.",
        "My address is wrong.",
        "My address is incorrect on the invoice.",
        "My address is on the invoice.",
        "My address is still the old one.",
        "My birthday is wrong in your system.",
        "My birthday is ruined.",
        "I'm on hold for my refund.",
    ],
)
def test_words_that_look_like_a_fact_are_none(text: str):
    assert told(text) == []


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("My goal is to never skip leg day", ("never skip leg day", "never skip leg day", "")),
        ("My weight goal is 155 lbs", ("weight", "155", "lb")),
        ("My target weight is 70 kg", ("weight", "70", "kg")),
        ("I want to get under 80 kg", ("weight", "80", "kg")),
        ("I want to get down to 80 kg.", ("weight", "80", "kg")),
        ("I'd like to weigh 80 kg", ("weight", "80", "kg")),
        ("My goal weight is 65kg", ("weight", "65", "kg")),
        ("goal: lose 5 kg", ("lose", "5", "kg")),
        ("My goal is to stop smoking.", ("stop smoking", "stop smoking", "")),
        ("I want to stop smoking.", ("stop smoking", "stop smoking", "")),
        ("My fitness goal is to run a marathon", ("run a marathon", "run a marathon", "")),
        ("I'm trying to stay under 2000 calories a day", ("calories", "2000", "calories")),
        ("My goal for this year is 24 books", ("books", "24", "books")),
        ("My savings goal is $5,000", ("savings", "5000", "USD")),
        ("My aim is to not drink on weekdays", ("not drink on weekdays", "not drink on weekdays", "")),
        ("My daily step goal is 10,000 steps", ("daily step", "10000", "steps")),
        ("my target is 8 hours of sleep", ("sleep", "8", "hours")),
    ],
)
def test_a_goal_keeps_metric_value_and_unit(text: str, goal: tuple[str, str, str]):
    assert [(each.kind, *told(text)[0]) for each in stated(text, MONDAY)] == [("goal", *goal)]


@pytest.mark.parametrize(
    "text",
    [
        "I want to cancel the blue armchair from my last purchase.",
        "Hi, I'm looking to exchange the headphones for a wireless pair.",
        "I also want to change the delivery address to my office.",
        "I don't want to return the whole set.",
        "Actually, I just want to upgrade both seats.",
        "I want to book a flight to Oslo for two passengers.",
        "Yes, I want to proceed.",
        "I've decided to only modify the second item.",
        "I'm trying to figure out what I paid for it.",
    ],
)
def test_a_request_that_an_agent_carries_out_at_once_is_no_goal(text: str):
    assert [each for each in stated(text, MONDAY) if each.kind == "goal"] == []


@pytest.mark.parametrize(
    "text",
    [
        "I want to change careers this year.",
        "I want to return to Japan.",
        "I want to pay off my student loan.",
        "I'm planning to move to Lisbon.",
        "I want to make new friends.",
        "I want to switch to a plant-based diet.",
        "I'm trying to use less plastic.",
        "I want to set up my own bakery.",
    ],
)
def test_a_goal_may_begin_with_the_verb_of_a_request(text: str):
    assert [each.kind for each in stated(text, MONDAY)] == ["goal"]
