"""The glossary has one meaning a word and names modules that exist; the page of values explains each value."""

import re
from pathlib import Path
from typing import Literal, get_args, get_origin

import pytest

from retrieval.tables import kinds

ROOT = Path(__file__).parents[1]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
VALUES = (ROOT / "docs" / "values.md").read_text()
ENUMERATIONS = {name: set(get_args(kind)) for name, kind in vars(kinds).items() if get_origin(kind) is Literal}


def listed() -> dict[str, set[str]]:
    """The values that the page explains, by the enumeration's name."""
    sections = re.findall(r"^## `(\w+)`\n(.*?)(?=^#|\Z)", VALUES, re.MULTILINE | re.DOTALL)
    return {name: set(re.findall(r"^\* `(\w+)`: \S", text, re.MULTILINE)) for name, text in sections}


def test_the_page_of_values_explains_every_enumeration():
    assert listed().keys() == ENUMERATIONS.keys()


@pytest.mark.parametrize("name", ENUMERATIONS)
def test_the_page_of_values_explains_just_the_values_of_an_enumeration(name: str):
    assert listed()[name] == ENUMERATIONS[name]


def test_every_module_that_the_glossary_names_is_there():
    missing = [path for path in set(re.findall(r"`([\w/]+\.py)`", GLOSSARY)) if not (ROOT / path).exists()]
    assert missing == []


def test_the_glossary_explains_at_most_a_hundred_words_each_once():
    entries = re.findall(r"^\* (.*?): ", GLOSSARY, re.MULTILINE)
    words = [word for entry in entries for word in re.findall(r"\*\*([^*]+)\*\*", entry)]
    assert len(entries) <= len(words) <= 100
    assert len(words) == len(set(words))
    assert not [entry for entry in entries if "(" in entry]
