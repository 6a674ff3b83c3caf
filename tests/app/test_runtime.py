"""The parts of a process: made from the settings, and closed when it ends."""

from pathlib import Path
from typing import Any, get_args

import pytest

from app.admission.errors import TooManyAtOnce
from app.runtime import make_embedder, running
from app.settings import Settings
from policy.orders import ORDERS
from retrieval.errors import EmbedderRefused
from tests.fakes.openai_server import Fault, OpenAIServer, error


def settings(home: Path, server: OpenAIServer, **more: Any) -> Settings:
    remote = {"embedder": "openai", "openai_base_url": server.base_url, "openai_embedding_dimension": server.dimension}
    given = {"home": home, "master_key": "5" * 64, **remote, **more}
    return Settings(**given)


async def test_the_embedder_is_closed_with_the_process(database_url: str, tmp_path: Path):
    with OpenAIServer(dimension=8) as server:
        async with running(settings(tmp_path, server, database_url=database_url)) as runtime:
            assert (await runtime.embedder.embed(["a text"])).shape == (1, 8)
        with pytest.raises(RuntimeError, match="closed"):
            await runtime.embedder.embed(["a text"])


async def test_every_kind_of_embedder_can_be_closed(tmp_path: Path):
    with OpenAIServer(dimension=8) as server:
        for kind in ("wordllama", "openai"):
            await make_embedder(settings(tmp_path, server, embedder=kind)).aclose()


class OfOneWidth(OpenAIServer):
    """Has a model that cannot shorten its vectors, as most have."""

    def _embeddings(self, payload: dict[str, Any], fault: Any) -> Any:
        return (
            error(400, "does not support matryoshka")
            if "dimensions" in payload
            else super()._embeddings(payload, fault)
        )


async def test_a_dimension_that_is_set_is_asked_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with OpenAIServer(dimension=8) as server:
        monkeypatch.setenv("CASEBANK_OPENAI_EMBEDDING_DIMENSION", "8")
        embedder = make_embedder(Settings(home=tmp_path, embedder="openai", openai_base_url=server.base_url))
        assert (await embedder.embed(["a text"])).shape == (1, 8)
        await embedder.aclose()
    assert [request.payload["dimensions"] for request in server.requests] == [8]


async def test_one_that_nobody_set_is_not(tmp_path: Path):
    with OpenAIServer(dimension=1536) as server:
        embedder = make_embedder(Settings(home=tmp_path, embedder="openai", openai_base_url=server.base_url))
        await embedder.embed(["a text"])
        await embedder.aclose()
    assert "dimensions" not in server.requests[0].payload


async def test_a_model_that_cannot_shorten_its_vectors_is_asked_once(tmp_path: Path):
    with OfOneWidth(dimension=8) as server:
        embedder = make_embedder(settings(tmp_path, server))
        for _ in range(2):
            assert (await embedder.embed(["a text"])).shape == (1, 8)
        await embedder.aclose()
    assert ["dimensions" in request.payload for request in server.requests] == [True, False, False]


async def test_a_text_that_is_refused_either_way_is_refused_and_the_width_asked_for_again(tmp_path: Path):
    with OpenAIServer(dimension=8) as server:
        embedder = make_embedder(settings(tmp_path, server))
        server.script(Fault.STATUS_400, Fault.STATUS_400)
        with pytest.raises(EmbedderRefused):
            await embedder.embed(["a text"])
        await embedder.embed(["a text"])
        await embedder.aclose()
    assert ["dimensions" in request.payload for request in server.requests] == [True, False, True]


async def test_the_embedders_settings_reach_the_server(tmp_path: Path):
    with OpenAIServer(dimension=8) as server:
        embedder = make_embedder(settings(tmp_path, server, openai_ask_dimension=True, openai_max_chars=5))
        await embedder.embed(["a long text"])
        await embedder.aclose()
        (request,) = server.requests
    assert request.payload["dimensions"] == 8
    assert request.payload["input"] == ["a lon"]


async def test_the_first_order_of_the_settings_is_that_of_reader_and_worker(database_url: str, tmp_path: Path):
    with OpenAIServer(dimension=8) as server:
        assert get_args(Settings.model_fields["first_order"].annotation) == tuple(ORDERS)
        async with running(settings(tmp_path, server, database_url=database_url, first_order="words")) as runtime:
            assert (runtime.reader.first_order, runtime.worker.cases.first_order) == ("words", "words")


async def test_a_users_requests_are_bounded_where_those_of_all_users_are_not(database_url: str, tmp_path: Path):
    limits = {"requests": 0, "user_requests": 2}
    given = {"home": tmp_path, "database_url": database_url, "master_key": "5" * 64}
    async with running(Settings(**given, limits=limits, timeouts_s={"turn": 0.01})) as runtime:
        turns = runtime.admission.turns
        assert turns is not None
        await turns.enter("a"), await turns.enter("a"), await turns.enter("b")
        with pytest.raises(TooManyAtOnce):
            await turns.enter("a")
