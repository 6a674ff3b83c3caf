"""Facts are found in the way people write them in a chat, and not in the look-alikes of these sentences."""

from datetime import date

import pytest

from tests.writer.facts.stated import stated
from writer.facts.extract import read

MONDAY = date(2026, 3, 2)


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("hey im Marta btw, 34, living in Porto", ("fact", "user", "home", "Porto", "")),
        ("Call me Jojo please, everyone does", ("fact", "user", "name", "Jojo", "")),
        ("I've just started at Siemens as a data engineer", ("fact", "user", "employer", "Siemens", "")),
        ("I no longer smoke", ("fact", "user", "does not smoke", "", "")),
        ("my budget's about 1200 dollars", ("fact", "user", "budget", "1200", "USD")),
        ("I'm 5'11", ("fact", "user", "height", "5'11", "")),
        ("I take metformin for my diabetes", ("fact", "user", "takes for diabetes", "metformin", "")),
        ("My phone is an iPhone 15", ("fact", "user", "phone", "an iPhone 15", "")),
        ("I go to the gym three times a week", ("fact", "user", "regularly", "go to the gym three times a week", "")),
        ("I work from home on Fridays", ("fact", "user", "regularly", "work from home on Fridays", "")),
        ("my new address is in Leeds, moved there on Monday", ("fact", "user", "home", "Leeds", "")),
        ("these days I'm into bouldering", ("preference", "user", "is fond of", "bouldering", "")),
        ("I got a promotion, I'm now head of sales", ("fact", "user", "role", "head of sales", "")),
        ("I'm in the PST time zone", ("fact", "user", "time zone", "PST", "")),
        ("I aim for 3 workouts weekly", ("goal", "user", "workouts", "3", "workouts")),
        ("My new year's resolution: read 24 books", ("goal", "user", "read", "24", "books")),
        ("goal weight: 155 lbs", ("goal", "user", "weight", "155", "lb")),
        ("target weight is 70", ("goal", "user", "weight", "70", "")),
        ("I set myself a goal of 3 workouts a week", ("goal", "user", "workouts", "3", "workouts")),
        ("I want to drink 3 liters of water daily", ("goal", "user", "drink water", "3", "liters")),
        ("i live in são paulo", ("fact", "user", "home", "são paulo", "")),
        ("im based out of Nairobi", ("fact", "user", "home", "Nairobi", "")),
        ("I live in Rio de Janeiro 🌴", ("fact", "user", "home", "Rio de Janeiro", "")),
        ("✅ I live in Accra", ("fact", "user", "home", "Accra", "")),
        ("ok so i live in Accra", ("fact", "user", "home", "Accra", "")),
        ("> quoted\nI live in Accra", ("fact", "user", "home", "Accra", "")),
        ("My city is Medellín", ("fact", "user", "home", "Medellín", "")),
        ("originally from Ghana", ("fact", "user", "origin", "Ghana", "")),
        ("I grew up in Naples", ("fact", "user", "origin", "Naples", "")),
        ("hi, Priya here from Pune", ("fact", "user", "name", "Priya", "")),
        ("the name is Bond", ("fact", "user", "name", "Bond", "")),
        ("my name is maria josé", ("fact", "user", "name", "maria josé", "")),
        ("I'm employed at Maersk", ("fact", "user", "employer", "Maersk", "")),
        ("I work @ Google", ("fact", "user", "employer", "Google", "")),
        ("I freelance as an illustrator", ("fact", "user", "role", "illustrator", "")),
        ("I'm a welder", ("fact", "user", "role", "welder", "")),
        ("I keep kosher", ("fact", "user", "diet", "kosher", "")),
        ("i got asthma", ("fact", "user", "health", "asthma", "")),
        ("I'm allergic to bees & wasps", ("fact", "user", "allergy", "bees & wasps", "")),
        ("My birthday is 12.03.", ("fact", "user", "birthday", "12.03", "")),
        ("i luv k-pop", ("preference", "user", "loves", "k-pop", "")),
        ("I've 3 cats", ("fact", "user", "has", "3 cats", "")),
        ("ich wohne in münchen", ("fact", "user", "home", "münchen", "")),
        ("vivo en guadalajara", ("fact", "user", "home", "guadalajara", "")),
        ("j'habite à lille", ("fact", "user", "home", "lille", "")),
        ("I'm trying to get my 5k under 25 minutes", ("goal", "user", "5k", "25", "minutes")),
        ("save $500 a month", ("goal", "user", "save", "500", "USD")),
        ("goal is 10k steps a day", ("goal", "user", "steps", "10000", "steps")),
        ("I'd like to lose 10 kilos by summer", ("goal", "user", "lose", "10", "kg")),
        ("I'd love to read 30 books this year", ("goal", "user", "read", "30", "books")),
        ("I'm saving up 20k for a car", ("goal", "user", "car", "20000", "")),
        ("saving up for a PS5", ("goal", "user", "a ps5", "a PS5", "")),
        ("I wanna get fit", ("goal", "user", "get fit", "get fit", "")),
        ("I have a goal of 100 push-ups", ("goal", "user", "push-ups", "100", "")),
        ("I'd like to improve my vo2max to 50", ("goal", "user", "improve my vo2max", "50", "")),
        ("I intend to pay off my 5,000 € debt by June", ("goal", "user", "pay off my debt", "5000", "EUR")),
        ("in 2026 I want to run 1000 km", ("goal", "user", "run", "1000", "km")),
        ("Next year I'd like to save £3000", ("goal", "user", "save", "3000", "GBP")),
        ("Our goal is to save 30.000 euros", ("goal", "user", "save", "30000", "EUR")),
    ],
)
def test_a_fact_is_found_in_a_sentence_of_a_chat(text: str, fact: tuple[str, ...]):
    found = stated(text, MONDAY)
    assert (found[-1].kind, found[-1].subject, found[-1].attribute, found[-1].value, found[-1].unit) == fact


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("I'm José and I live in Łódź.", ["José", "Łódź"]),
        ("My name is Łukasz Nowak.", ["Łukasz Nowak"]),
        ("Hi, I'm Ömer from Çeşme", ["Ömer"]),
        ("I'm from Århus.", ["Århus"]),
        ("My name is Олег and I work at Яндекс.", ["Олег", "Яндекс"]),
        ("My name is 田中.", ["田中"]),
        ("My dog Žuža is old", ["Žuža"]),
        ("I'm a big Řezník fan.", ["Řezník"]),
        ("Ich heiße Łukasz und wohne in Łódź.", ["Łukasz", "Łódź"]),
    ],
)
def test_a_name_may_begin_with_any_capital_or_a_letter_of_a_script_without_capitals(text: str, values: list[str]):
    assert [each.value for each in stated(text, MONDAY)] == values


def test_a_sentence_with_two_facts_gives_both():
    assert [each.value for each in stated("I'm a software engineer based in Berlin", MONDAY)] == [
        "software engineer",
        "Berlin",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "My phone is dead",
        "I aim for the best",
        "The goal weight is unknown",
        "My luggage weight is 20 kg",
        "The weight is 20 kg",
        "My team's budget is 3 million",
        "My laptop is a mess",
        "My team is working on it",
        "My team is great",
        "My car is in the shop",
        "My bank is being difficult",
        "My language is bad, sorry",
        "My browser is not loading the page",
        "I get this error every day",
        "I see that three times a day",
        "I have to restart it every morning",
        "I run it every night",
        "I do this daily",
        "I take this seriously every day",
        "My last name is misspelled on the ticket",
        "My title is wrong",
        "I started at the beginning",
        "I'm on a call",
        "I'm on a deadline",
        "I'm on a different flight",
        "I'm on the basic plan",
        "I'm in the first row",
        "I have a bad connection",
        "I have a bad feeling about this",
        "I can have it delivered",
        "The budget is too small",
        "The budget for the project is 3 million",
        "I make 3 copies of it",
        "I make 5 requests per second",
        "I earn points on every flight",
        "I can spend up to 3 hours on that",
        "my cat is sleeping",
        "my wife is angry",
        "My brother is on the same flight",
        "my dad is in hospital",
        "my friend is here",
        "I stopped running the script",
        "I support this idea",
        "I support Anna's idea",
        "I run a query",
        "I run a big cluster",
        "I'm doing a test",
        "I'm a head of lettuce",
        "We're single bookings on one reservation",
        "I work for free",
        "I'm living in the past",
        "I've been living in fear",
        "My place is in the queue",
        "I take after my dad",
        "I have a list of 3 items",
        "I have a 2 bedroom apartment to rent",
        "I'm waiting on time",
        "I'm on time",
        "My color is off",
        "My address is wrong",
        "My address is in my profile",
        "My city is nice",
        "My name is missing on the list",
        "name is required",
        "I come from the gym",
        "I work @ 5pm",
        "I'm an 80 year old company's customer",
        "I keep kosher salt in the kitchen",
        "I got a bug in my code",
        "I'd like to save 2 files",
        "I'd like to run 5 tests",
        "I'd like to get 20 % off",
        "I'd like to learn how to reset my password",
        "I want to be able to log in",
        "I'm saving 3 files",
        "goal is unclear",
        "saving for later",
        "lose 5 points",
        "vivo en una casa",
        "ich wohne in einer wg",
        "j'habite à côté",
        "I can't speak right now.",
        "I can't eat right now.",
        "I can't drive you home.",
        "I don't drink and drive.",
        "I'm from HR.",
        "I'm from Marketing.",
        "I work at the speed of light.",
        "I work for peanuts.",
        "I speak no French.",
        "I am married to my job.",
        "I'm a vegan's worst nightmare.",
    ],
)
def test_a_sentence_that_only_looks_like_a_fact_gives_none(text: str):
    assert stated(text, MONDAY) == []


def test_a_pet_that_died_is_no_longer_had():
    for text in ("my dog died last week", "My dog Žuža died."):
        (ended,) = [each for each in read(text, MONDAY) if each.ends]
        assert (ended.attribute, ended.value) == ("has", "a dog")
