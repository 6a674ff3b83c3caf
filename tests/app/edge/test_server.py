"""The server keeps to what its clients rely on."""

from pathlib import Path

import httpx
import uvicorn

from app.edge.server import options
from app.settings import Settings


def test_an_idle_connection_outlives_those_that_clients_keep(tmp_path: Path):
    config = uvicorn.Config("app.main:create_app", **options(Settings(home=tmp_path)))
    assert config.timeout_keep_alive >= 2 * (httpx.Limits().keepalive_expiry or 0)
