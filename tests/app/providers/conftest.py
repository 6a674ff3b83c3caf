"""An embedder in this process, one over HTTP with the server that it asks, and what their vectors must be."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
import pytest

from app.providers.openai import Endpoint, OpenAIEmbedder, Patience
from app.providers.wordllama import WordLlamaEmbedder
from retrieval.ports import Embedder
from tests.clock import Clock
from tests.fakes.openai_server import OpenAIServer

KEY = "sk-made-up"
QUICK = Patience(timeout_s=2, budget_s=60, attempts=3, wait_initial_s=0.01, wait_max_s=0.02, cooldown_s=30)
"""Tries again soon, and leaves a busy machine time to answer."""
TEXTS = ["reset the user's password", "deploy the staging cluster", "write a haiku"]


def assert_unit(rows: np.ndarray, count: int, dimension: int):
    assert rows.shape == (count, dimension)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


@pytest.fixture(scope="module")
def running_server() -> Iterator[OpenAIServer]:
    with OpenAIServer(dimension=32) as server:
        yield server


@pytest.fixture
def server(running_server: OpenAIServer) -> OpenAIServer:
    running_server.reset()
    return running_server


@pytest.fixture
def clock() -> Clock:
    return Clock()


def endpoint(server: OpenAIServer, **changes: Any) -> Endpoint:
    settings = {"base_url": server.base_url, "model": "hashed-words", "dimension": server.dimension, "api_key": KEY}
    return Endpoint(**(settings | changes))


@pytest.fixture
async def remote(server: OpenAIServer, clock: Clock) -> AsyncIterator[OpenAIEmbedder]:
    embedder = OpenAIEmbedder(endpoint(server), QUICK, clock)
    yield embedder
    await embedder.aclose()


@pytest.fixture(scope="module")
def local() -> WordLlamaEmbedder:
    return WordLlamaEmbedder()


@pytest.fixture(params=["local", "remote"])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    return request.getfixturevalue(request.param)
