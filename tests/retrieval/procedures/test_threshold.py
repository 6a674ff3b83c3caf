"""From which similarity on two texts mean the same: each model by its own measure."""

from typing import Any

import numpy as np
import pytest

from app.providers.wordllama import WordLlamaEmbedder
from policy.replay import comparison_of, unlike_similarity
from retrieval.procedures.threshold import (
    MOST_TRIES,
    OTHER_LANGUAGES,
    TRIPLES,
    Calibrations,
    Threshold,
    Unrelated,
    calibrated,
    sentences,
)
from retrieval.search.unrelated import Floor
from tests.policy.banks import history

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


def test_unlike_texts_of_a_profile_raise_the_floor_by_their_similarity_and_never_lower_it():
    english = Unrelated(mean=0.1, most=0.4)  # the floor has a third of the way from the mean to 1
    assert english.floor(0.55) == Floor(of_model=0.4, of_profile=pytest.approx(0.7))
    assert english.floor(0.1) == english.floor(0.0) == english.floor(None) == Floor(0.4, 0.4)


async def test_six_pairs_of_unlike_german_texts_raise_the_floor_of_their_profile_and_three_do_not():
    tasks = ["Ich habe mein Passwort vergessen", "Die Lampe kam zerbrochen an", "Wann wird mein Paket geliefert?"]
    tasks.append("Bitte ändern Sie die Anschrift")
    vectors = np.array(await EMBEDDER.embed(tasks))
    runs = list(zip(tasks, ["reset", "refund", "track", "move"], strict=True))
    known = Calibrations()
    known.learn("model", list(await EMBEDDER.embed(known.wanted("model"))))

    def floor(count: int) -> Floor:
        unlike = unlike_similarity(comparison_of(history(runs[:count], vectors=vectors[:count])))
        found = known.floor("model", unlike)
        assert found is not None
        return found

    assert floor(4).of_profile > floor(4).of_model
    assert floor(3) == known.floor("model")
