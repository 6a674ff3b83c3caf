"""Complaints: what a user says when it is not what they wanted."""

import pytest

from tests.writer.runs import asked
from writer.analysis.complaints import complaints


@pytest.mark.parametrize(
    "said",
    [
        "That is wrong.", "that's not what I asked", "It did not work", "it still doesn't work", "This isn't correct",
        "You made a mistake", "Das ist falsch", "Das hat leider nicht geklappt", "Das funktioniert nicht",
        "Eso no es correcto", "No funcionó", "C'est faux", "Ça ne marche pas", "Ce n'est pas ce que je voulais",
        "'Smyth' is wrong", "The name Smyth isn't right", "It should be 'Smith', not 'Smyth'", "Not 'Smyth', 'Smith'",
        "I asked for 'Smith'", "„Smyth“ ist falsch", "Non funziona", "Não funcionou",
        "Это неправильно", "不对", "動きません",
    ],
)  # fmt: skip
def test_a_complaint_is_understood_in_several_languages(said: str):
    assert complaints(asked("do it", said)) == [said]
    assert complaints(asked(said)) == []  # the first turn is the task


@pytest.mark.parametrize(
    "said",
    [
        "Thanks, that is right",
        "There is nothing wrong with it",
        "yes",
        "",
        "Das ist gut",
        "It should be fine",
        "Not today, thanks",
        "I asked for it, thanks",
        "The 'Smith' account is right",
    ],
)
def test_praise_is_no_complaint(said: str):
    assert complaints(asked("do it", said)) == []
