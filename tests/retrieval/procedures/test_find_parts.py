"""A task is split into the parts that it asks for, in their order."""

import time

import pytest

from retrieval.procedures.find import MOST_PARTS, parts_of


@pytest.mark.parametrize(
    ("task", "parts"),
    [
        ("refund order 7 and change the address", ["refund order 7", "change the address"]),
        ("refund order 7; change the address", ["refund order 7", "change the address"]),
        ("1. refund order 7\n2. change the address", ["refund order 7", "change the address"]),
        ("Setze das Passwort zurück und buche einen Flug", ["Setze das Passwort zurück", "buche einen Flug"]),
        ("réserve un vol puis annule la commande", ["réserve un vol", "annule la commande"]),
        ("reserva un vuelo y cancela el pedido", ["reserva un vuelo", "cancela el pedido"]),
    ],
)
def test_each_part_is_found(task: str, parts: list[str]):
    assert parts_of(task) == parts


@pytest.mark.parametrize("task", ["", "refund order 7", "search and replace", "pay 4 and 5", "android sand", "a;;b"])
def test_a_task_of_one_part_is_not_split(task: str):
    assert parts_of(task) == []


@pytest.mark.parametrize("space", [" ", "\t", " \n"])
def test_a_task_with_much_white_space_is_split_in_a_moment(space: str):
    started = time.process_time()
    parts_of(f"paint{space * 10_000}wall and call Bob")
    assert time.process_time() - started < 5  # a search from each space takes half a minute


def test_a_text_of_many_parts_is_not_split():
    assert parts_of("do it; " * 100) == []
    assert len(parts_of("do this; " * MOST_PARTS)) == MOST_PARTS
