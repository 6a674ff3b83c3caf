"""The world of benchmark 1: questions of bank customers, a bank of answers with some wrong ones, and their reuse.

A stored case is a question with the intent that its run answered; reusing it works if that is the query's own intent.
A policy may see a case's stored answer, like a plan, but learns a query's intent only by rewards.

Data: banking77 (Casanueva et al. 2020, CC BY 4.0), files ``train.csv`` and ``test.csv`` with ``text,category``.
"""

import csv
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from policy.logged import Floats, Ints
from retrieval.ports import Embedder, Vectors
from retrieval.search.candidates import HALF

Bools = NDArray[np.bool_]

POOL = 16
RRF_K = 50.0
BM25_K1, BM25_B = 1.2, 0.75
PRIOR = 4.0
"""Successes, and failures, that a case starts with in these rules; the product begins with Beta(1, 1)."""


@dataclass(frozen=True, slots=True, eq=False)
class Questions:
    """Texts with their intents; rows are questions."""

    texts: tuple[str, ...]
    intents: Ints  # (n,), 0 .. number of intents - 1
    vectors: Vectors  # (n, dimension), unit length

    def take(self, rows: Ints) -> "Questions":
        """Returns these rows, in this order."""
        return Questions(tuple(self.texts[row] for row in rows.tolist()), self.intents[rows], self.vectors[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """The two files, never mixed."""

    train: Questions
    test: Questions
    intents: int


@dataclass(frozen=True, slots=True, eq=False)
class Bank:
    """The cases, the oldest first; ``wrong`` is for judging, never for ranking."""

    texts: tuple[str, ...]
    vectors: Vectors  # (cases, dimension)
    answers: Ints  # (cases,), the stored intent: what a service sees as the plan
    wrong: Bools  # (cases,), the stored answer is not the question's intent


@dataclass(frozen=True, slots=True, eq=False)
class Pools:
    """The candidates of each query, (n, size), the highest RRF first; ties go to the newer case."""

    case: Ints
    similarity: Floats  # cosine
    relevance: Floats  # BM25, 0: no word in common
    semantic_rank: Floats  # 1-based in the whole bank
    keyword_rank: Floats  # 1-based in the whole bank; NaN: no word in common
    rrf: Floats

    def take(self, rows: Ints | slice) -> "Pools":
        """Returns the pools of these queries."""
        return Pools(**{column.name: getattr(self, column.name)[rows] for column in fields(self)})


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """A bank, the stream of queries whose decisions are logged, and the queries of the test."""

    bank: Bank
    stream: Questions
    pools: Pools
    flipped: Bools  # (stream,), the feedback says the opposite of what is true
    test: Questions
    test_pools: Pools

    def works(self) -> Bools:
        """Returns whether each candidate would help the query of the stream, (stream, POOL)."""
        return np.asarray(self.bank.answers[self.pools.case] == self.stream.intents[:, None])

    def test_works(self) -> Bools:
        """Returns whether each candidate would help the query of the test, (test, POOL)."""
        return np.asarray(self.bank.answers[self.test_pools.case] == self.test.intents[:, None])


@dataclass(frozen=True, slots=True, eq=False)
class Log:
    """n decisions that served a case, in the order they were taken."""

    row: Ints  # (n,), the query's place in the stream
    place: Ints  # (n,), the served candidate's place in the pool
    case: Ints  # (n,), the served candidate
    reward: Floats  # (n,), 0 or 1 as fed back, flips included


Scorer = Callable[[World, Questions, Pools, Log], Floats]
"""Function from the log to scores of candidates, (n, POOL); higher is better."""


async def read(folder: Path, embedder: Embedder) -> Corpus:
    """Returns the corpus of the folder's two files, embedded."""
    files = {name: _rows(folder / f"{name}.csv") for name in ("train", "test")}
    names = sorted({intent for _, intent in files["train"]})
    number = {name: index for index, name in enumerate(names)}
    questions = {}
    for name, rows in files.items():
        texts = tuple(text for text, _ in rows)
        intents = np.array([number[intent] for _, intent in rows], dtype=np.int64)
        questions[name] = Questions(texts, intents, await embedder.embed(texts))
    return Corpus(questions["train"], questions["test"], len(names))


def _rows(path: Path) -> list[tuple[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [(row["text"], row["category"]) for row in csv.DictReader(file)]


@dataclass(frozen=True, slots=True)
class Scenario:
    """The sizes of a world, and the shares of wrong answers and of flipped feedback."""

    cases: int = 1_500
    decisions: int = 3_000
    wrong: float = 0.3
    flipped: float = 0.1


def world(corpus: Corpus, scenario: Scenario, rng: np.random.Generator) -> World:
    """Returns a bank drawn from the training file, and a stream of its other questions, each once."""
    shuffled = rng.permutation(len(corpus.train.texts))
    stored = corpus.train.take(shuffled[: scenario.cases])
    stream = corpus.train.take(shuffled[scenario.cases :][: scenario.decisions])
    bank = stored_bank(stored, scenario.wrong, corpus.intents, rng)
    search = Search.of(bank)
    return World(
        bank=bank,
        stream=stream,
        pools=search.pools(stream),
        flipped=rng.random(len(stream.texts)) < scenario.flipped,
        test=corpus.test,
        test_pools=search.pools(corpus.test),
    )


def stored_bank(stored: Questions, share: float, intents: int, rng: np.random.Generator) -> Bank:
    """Returns every question as a case with its own intent as the answer, but a share of them with any other one."""
    wrong = np.zeros(len(stored.texts), dtype=bool)
    wrong[rng.permutation(len(wrong))[: round(share * len(wrong))]] = True
    other = (stored.intents + rng.integers(1, intents, len(wrong))) % intents
    return Bank(stored.texts, stored.vectors, np.where(wrong, other, stored.intents), wrong)


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """Hybrid search over one bank, as retrieval does it, with BM25 for the keyword half.

    Sources: Robertson & Zaragoza 2009 (BM25); Cormack, Clarke & Büttcher 2009 (RRF).
    """

    bank: Bank
    vocabulary: Mapping[str, int]
    weights: NDArray[np.float32]  # (words, cases), what a word of the query adds to a case

    @classmethod
    def of(cls, bank: Bank) -> "Search":
        """Returns the search over the bank."""
        counts = [Counter(_words(text)) for text in bank.texts]
        vocabulary = {word: row for row, word in enumerate(sorted({word for count in counts for word in count}))}
        times = np.zeros((len(vocabulary), len(counts)), dtype=np.float32)
        for column, count in enumerate(counts):
            for word, number in count.items():
                times[vocabulary[word], column] = number
        holders = (times > 0).sum(axis=1, keepdims=True)
        rarity = np.log1p((len(counts) - holders + 0.5) / (holders + 0.5))
        length = times.sum(axis=0, keepdims=True)
        damped = times + BM25_K1 * (1 - BM25_B + BM25_B * length / length.mean())
        return cls(bank, vocabulary, (rarity * times * (BM25_K1 + 1) / damped).astype(np.float32))

    def pools(self, questions: Questions, size: int = POOL) -> Pools:
        """Returns each question's candidates."""
        similarity = (questions.vectors @ self.bank.vectors.T).astype(np.float64)
        relevance = self._relevance(questions.texts)
        semantic, keyword = _ranks(similarity), _ranks(relevance)
        keyword = np.where(relevance > 0, keyword, np.nan)
        rrf = _part(semantic) + _part(keyword)
        case = best(rrf, size)
        columns = (similarity, relevance, semantic, keyword, rrf)
        return Pools(case, *(np.take_along_axis(column, case, axis=1) for column in columns))

    def _relevance(self, texts: Sequence[str]) -> Floats:
        words = np.zeros((len(texts), len(self.vocabulary)), dtype=np.float32)
        for row, text in enumerate(texts):
            words[row, [self.vocabulary[word] for word in _words(text) if word in self.vocabulary]] = 1
        return (words @ self.weights).astype(np.float64)


def _part(ranks: Floats) -> Floats:
    return np.where(ranks <= HALF, 1 / (RRF_K + ranks), 0.0)


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def best(scores: Floats, size: int) -> Ints:
    """Returns the columns of the highest scores of each row, (n, size), ties to the later column."""
    last = scores.shape[1] - 1
    return np.asarray(last - np.argsort(-scores[:, ::-1], axis=1, kind="stable")[:, :size])


def _ranks(scores: Floats) -> Floats:
    """Returns 1-based ranks within each row, the highest score first, ties to the later column."""
    ranks = np.empty(scores.shape)
    np.put_along_axis(ranks, best(scores, scores.shape[1]), np.arange(1.0, scores.shape[1] + 1)[None], axis=1)
    return ranks


def posterior(bank: Bank, log: Log, prior: float = PRIOR) -> Floats:
    """Returns each case's expected reward, (cases,), from the log's rewards of its reuse."""
    total = np.bincount(log.case, log.reward, len(bank.answers))
    count = np.bincount(log.case, minlength=len(bank.answers))
    return np.asarray((total + prior) / (count + 2 * prior))


def earned(world: World, scores: Floats) -> Floats:
    """Returns the true reward, (test,), of each test query's first case; ties go to the higher RRF."""
    return np.asarray(world.test_works()[np.arange(len(scores)), scores.argmax(axis=1)], dtype=np.float64)
