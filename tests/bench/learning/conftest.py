"""Small worlds of both data sets, and a stream served from one; skipped where there is no data."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.providers.wordllama import WordLlamaEmbedder
from bench.learning import banking, tau, tau_folds
from bench.learning.learner import CANARY_PLAN, Recipe, Service, served
from bench.learning.reuse import Stage, stage
from tests.paths import DATA

TINY = banking.Scenario(cases=120, decisions=260)
QUICK = Recipe(members=2, plan=replace(CANARY_PLAN, steps=20))


def _folder(*parts: str) -> Path:
    folder = DATA.joinpath(*parts)
    if not folder.exists():
        pytest.skip("no data beside the repository; CASEBANK_DATA names another folder")
    return folder


@pytest.fixture(scope="session")
def embedder() -> WordLlamaEmbedder:
    return WordLlamaEmbedder()


@pytest.fixture(scope="session")
async def corpus(embedder: WordLlamaEmbedder) -> banking.Corpus:
    return await banking.read(_folder("banking77"), embedder)


@pytest.fixture(scope="session")
def small_corpus(corpus: banking.Corpus) -> banking.Corpus:
    return replace(corpus, test=corpus.test.take(np.arange(0, len(corpus.test.texts), 20)))


@pytest.fixture(scope="session")
def reuse(small_corpus: banking.Corpus) -> Stage:
    return stage(small_corpus, TINY, 0)


@pytest.fixture(scope="session")
def stream(reuse: Stage) -> Service:
    service = Service(reuse.stream, reuse.outcome, reuse.effects, 1, np.random.default_rng(0))
    served([service], QUICK, (260,))
    return service


@pytest.fixture(scope="session")
async def airline(embedder: WordLlamaEmbedder) -> tau.Domain:
    return await tau.read(_folder("tau", "airline"), embedder)


@pytest.fixture(scope="session")
def fold(airline: tau.Domain) -> tau_folds.Fold:
    return next(tau_folds.folds(airline, [0]))
