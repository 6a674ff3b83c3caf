"""What a turn tells of its user by rule, and what it does not: better to miss one than to invent one."""

from datetime import date

import pytest

from tests.writer.facts.stated import stated
from writer.facts.draft import FactDraft
from writer.facts.times import Days

MONDAY = date(2026, 3, 2)


def told(text: str) -> list[tuple[str, str, str, str, str]]:
    return [(each.kind, each.subject, each.attribute, each.value, each.unit) for each in stated(text, MONDAY)]


def one(text: str) -> FactDraft:
    (found,) = stated(text, MONDAY)
    return found


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("My goal is to save 500 EUR a month.", ("goal", "user", "save", "500", "EUR")),
        ("I want to save 600 euros a month now!", ("goal", "user", "save", "600", "EUR")),
        ("I'm trying to lose 5 kg by June.", ("goal", "user", "lose", "5", "kg")),
        ("I've always wanted to learn Spanish.", ("goal", "user", "learn spanish", "learn Spanish", "")),
        ("Hi, my name is Ada Lovelace.", ("fact", "user", "name", "Ada Lovelace", "")),
        ("I live in Berlin with two cats.", ("fact", "user", "home", "Berlin", "")),
        ("No, I moved to Leeds.", ("fact", "user", "home", "Leeds", "")),
        ("I'm a software engineer at a bank.", ("fact", "user", "role", "software engineer", "")),
        ("I work for Acme.", ("fact", "user", "employer", "Acme", "")),
        ("I'm allergic to peanuts.", ("fact", "user", "allergy", "peanuts", "")),
        ("My wife is called Rosa.", ("fact", "user's wife", "name", "Rosa", "")),
        ("My favourite colour is teal.", ("preference", "user", "favourite colour", "teal", "")),
        ("I really love hiking in the Alps.", ("preference", "user", "loves", "hiking in the Alps", "")),
        ("I prefer window seats.", ("preference", "user", "prefers", "window seats", "")),
    ],
)
def test_what_a_user_tells_of_themselves_is_read_off(text: str, fact: tuple[str, ...]):
    assert told(text) == [fact]


@pytest.mark.parametrize(
    "text",
    [
        "Do I live in Berlin?",
        "If I lived in Berlin, I want to learn German.",
        "I might want to learn Spanish.",
        "I would love hiking in the Alps.",
        "I'd love to see that.",
        "I don't live in Berlin.",
        "I never said my name is Ada.",
        "I no longer want to save 500 EUR a month.",
        'He said "I live in Berlin".',
        "> I live in Berlin",
        "`I live in Berlin`",
        "My brother told me that I love hiking.",
        "Yeah, right, I love hiking in the rain /s",
        "Oh great, I love waiting for the bus.",
        "I love it!",
        "I love how you said that.",
        "I want to thank you for this.",
        "I'm a bit tired.",
        "Imagine I work for Acme.",
        "The user lives in Berlin.",
        "You love hiking.",
        "x" * 400 + " I live in Berlin.",
        "",
    ],
)
def test_questions_hypotheticals_quotations_negations_and_irony_are_no_facts(text: str):
    assert stated(text, MONDAY) == []


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("I went to the dentist yesterday.", date(2026, 3, 1), date(2026, 3, 1)),
        ("Last week we moved the piano.", date(2026, 2, 23), date(2026, 3, 1)),
        ("I bought a bike last weekend.", date(2026, 2, 28), date(2026, 3, 1)),
        ("I bought a bike two years ago.", date(2024, 1, 1), date(2024, 12, 31)),
        ("I finished the course on 14 February 2026.", date(2026, 2, 14), date(2026, 2, 14)),
        ("We visited Rome in December.", date(2025, 12, 1), date(2025, 12, 31)),
        ("I'm flying to Oslo tomorrow.", date(2026, 3, 3), date(2026, 3, 3)),
        ("I met Tom last Friday.", date(2026, 2, 27), date(2026, 2, 27)),
        ("I met Tom on Friday.", date(2026, 2, 27), date(2026, 2, 27)),
        ("On Friday I met Tom.", date(2026, 2, 27), date(2026, 2, 27)),
        ("I'm flying to Oslo on Friday.", date(2026, 3, 6), date(2026, 3, 6)),
    ],
)
def test_an_event_has_the_days_that_its_words_name(text: str, first: date, last: date):
    found = one(text)
    assert found.kind == "event"
    assert found.about is not None
    assert (found.about.first, found.about.last) == (first, last)


@pytest.mark.parametrize(
    ("text", "verb", "value", "unit"),
    [
        ("I ran 5 km yesterday.", "ran", "5", "km"),
        ("I ran 10 km on Monday.", "ran", "10", "km"),
        ("I slept 6 hours last night.", "slept", "6", "hours"),
        ("I walked 12,000 steps today.", "walked", "12000", "steps"),
        ("I did 3 workouts this week.", "did", "3", "workouts"),
    ],
)
def test_an_event_that_is_an_amount_has_its_value_and_unit(text: str, verb: str, value: str, unit: str):
    assert told(text) == [("event", "user", verb, value, unit)]
    assert one(text).category == "health"


@pytest.mark.parametrize(
    ("amount", "value"),
    [
        ("1.5k euros", "1500"),
        ("1,5k euros", "1500"),
        ("15k euros", "15000"),
        ("1.25 million euros", "1250000"),
        ("$2m", "2000000"),
        ("€3bn", "3000000000"),
        ("20 thousand dollars", "20000"),
        ("1 500 euros", "1500"),
        ("12\u00a0500,50 euros", "12500,50"),
        ("1'200 chf", "1200"),
        ("30.000 euros", "30000"),
        ("€1.000,50", "1000,50"),
    ],
)
def test_an_amount_is_the_number_that_was_said_however_it_is_written(amount: str, value: str):
    assert one(f"My budget is {amount}.").value == value


@pytest.mark.parametrize(
    "text",
    [
        "My budget is 1000-2000 euros.",
        "My budget is $1,000 - $2,000.",
        "My rent is 800 or 900 euros.",
        "I weigh 80 to 85 kg.",
        "I'm 2.01 feet off.",
    ],
)
def test_a_part_of_a_number_or_of_a_range_is_no_value(text: str):
    assert stated(text, MONDAY) == []


def test_a_fact_behind_many_endings_is_read():
    given_up = "I quit smoking. I quit drinking. I quit sugar. I quit coffee. I quit chess."
    assert [each.value for each in stated(f"{given_up} I live in Rome.", MONDAY)][-1] == "Rome"


@pytest.mark.parametrize("height", ["1.80 m", "180 cm", "5'11\"", "6 feet"])
def test_a_height_keeps_its_unit(height: str):
    assert (one(f"My height is {height}.").attribute, one(f"My height is {height}.").value) == ("height", height)


def test_a_weight_in_stone_is_none_in_another_unit():
    assert (one("I weigh 12 stone.").value, one("I weigh 12 stone.").unit) == ("12", "stone")


def test_the_29th_of_february_is_a_day_in_the_year_that_has_it():
    (told,) = stated("I finished the course on 29 February.", date(2024, 3, 4))
    assert told.about == Days(date(2024, 2, 29), date(2024, 2, 29))


def test_a_weekday_of_a_habit_is_no_day():
    assert [each.kind for each in stated("I had a meeting on Monday mornings.", MONDAY)] == []


def test_a_day_that_no_calendar_has_names_no_time():
    assert [each.about for each in stated("I finished the course on 31 June.", MONDAY)] in ([], [None])


def test_one_value_at_a_time_is_what_a_newer_one_contradicts_and_a_list_is_not():
    assert one("I live in Berlin.").single
    assert one("My goal is to save 500 EUR a month.").single
    assert not one("I really love hiking in the Alps.").single
    assert not one("I'm allergic to peanuts.").single


def test_a_goal_has_the_category_of_its_words():
    assert one("My goal is to save 500 EUR a month.").category == "money"
    assert one("I've always wanted to learn Spanish.").category == "learning"
