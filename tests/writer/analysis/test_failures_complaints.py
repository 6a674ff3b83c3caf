"""Complaints: what a user says when it is not what they wanted."""

import pytest

from tests.writer.runs import asked
from writer.analysis.failures import complaints


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


@pytest.mark.parametrize(
    "said",
    [
        "My heating is still not working, by the way. Also set another alarm for 8",
        "On my second line the TV does not work, set it to 100 please", "Our old printer is broken, order a new one",
        "Meine Heizung funktioniert immer noch nicht", "Der Fernseher geht leider nicht", "Mi televisor no funciona",
        "Ma télé ne marche pas",
    ],
)  # fmt: skip
def test_a_thing_of_the_users_that_does_not_work_is_no_complaint(said: str):
    assert complaints(asked("do it", said)) == []
    assert complaints(asked("do it", f"{said}. And that is wrong")) == [f"{said}. And that is wrong"]
