"""From which similarity on two texts mean the same: each model by its own measure."""

from typing import Any

import numpy as np
import pytest

from app.providers.wordllama import WordLlamaEmbedder
from retrieval.procedures.threshold import (
    MOST_TRIES,
    OTHER_LANGUAGES,
    TRIPLES,
    Calibrations,
    Threshold,
    calibrated,
    sentences,
)

EMBEDDER = WordLlamaEmbedder()


def test_the_threshold_tells_most_of_the_sentences_right_and_says_how_many():
    numbers = EMBEDDER.vectors(sentences())
    found = calibrated(numbers)
    assert found.origin == "measured"
    units = numbers.reshape(len(TRIPLES), 3, -1)
    same, other = (np.einsum("nd,nd->n", units[:, 0], units[:, k]) for k in (1, 2))
    right = ((same >= found.similarity).mean() + (other < found.similarity).mean()) / 2
    assert found.right == pytest.approx(right)
    assert right >= 0.8
    for cut in np.linspace(-1, 1, 101):
        assert right >= ((same >= cut).mean() + (other < cut).mean()) / 2


def test_two_models_have_thresholds_of_their_own():
    def model(same: float, other: float) -> list[Any]:
        vectors = [[1.0, 0.0], [same, (1 - same**2) ** 0.5], [other, (1 - other**2) ** 0.5]] * len(TRIPLES)
        vectors += [[0.0, 1.0]] * len(OTHER_LANGUAGES)
        return [np.array(each, np.float32) for each in vectors]

    known = Calibrations()
    assert known.wanted("wide") == [*sentences(), *OTHER_LANGUAGES]
    known.learn("wide", model(0.9, 0.1))
    known.learn("narrow", model(0.95, 0.85))
    assert known.wanted("wide") == []
    assert known.of("wide") == Threshold(pytest.approx(0.5), "measured", 1.0)
    assert known.of("narrow") == Threshold(pytest.approx(0.9), "measured", 1.0)
    assert known.of("unknown") == Threshold(0.7, "source")


def test_a_model_that_failed_once_is_measured_by_a_later_call_and_one_that_always_fails_is_left():
    known, vectors = Calibrations(), EMBEDDER.vectors([*sentences(), *OTHER_LANGUAGES])
    known.learn("once", [])
    assert known.wanted("once")
    known.learn("once", vectors)
    assert (known.wanted("once"), known.of("once").origin) == ([], "measured")
    for _ in range(MOST_TRIES):
        assert known.wanted("never")
        known.learn("never", [])
    assert (known.wanted("never"), known.of("never").origin) == ([], "source")


@pytest.mark.parametrize(
    ("query", "english"),
    [
        ("I am still waiting for my card, is this all right?", True),
        ("paint the kitchen sink", True),
        ("Tengo que devolver un pedido dañado", False),
        ("Верни деньги за заказ", False),
        ("注文を返品したい", False),
    ],
)
async def test_a_query_in_another_language_raises_the_floor_and_one_in_english_does_not(query: str, *, english: bool):
    known = Calibrations()
    known.learn("model", list(await EMBEDDER.embed(known.wanted("model"))))
    (vector,) = await EMBEDDER.embed([query])
    usual, floor = known.floor("model"), known.floor("model", None, vector.tolist())
    assert usual is not None
    assert floor is not None
    assert (floor.of_profile == usual.of_profile) == english
    assert known.floor("model", 0.0, vector.tolist()) == usual  # a profile that was measured is not held to it
