"""The parts of a process: made from the settings, and closed when it ends."""

from pathlib import Path
from typing import Any

import pytest

from app.runtime import make_embedder, running
from app.settings import Settings
from tests.fakes.openai_server import OpenAIServer


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


async def test_the_embedders_settings_reach_the_server(tmp_path: Path):
    with OpenAIServer(dimension=8) as server:
        embedder = make_embedder(settings(tmp_path, server, openai_ask_dimension=True, openai_max_chars=5))
        await embedder.embed(["a long text"])
        await embedder.aclose()
        (request,) = server.requests
    assert request.payload["dimensions"] == 8
    assert request.payload["input"] == ["a lon"]
