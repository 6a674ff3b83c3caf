"""The same model at another dimension is another space: nothing breaks, and a re-embedding brings the bank over."""

from pathlib import Path

import httpx

from tests.fakes.openai_server import OpenAIServer
from tests.processes import Service, casebank, migrated_home, retain, retrieve, worked


def settings(server: OpenAIServer) -> dict[str, str]:
    return {
        "CASEBANK_EMBEDDER": "openai",
        "CASEBANK_OPENAI_BASE_URL": server.base_url,
        "CASEBANK_OPENAI_EMBEDDING_MODEL": "one-model",
        "CASEBANK_OPENAI_EMBEDDING_DIMENSION": str(server.dimension),
    }


def served(home: Path, server: OpenAIServer, task: str) -> httpx.Response:
    """Retains a run, waits for the worker, and returns what a retrieve is answered."""
    with Service(home, **settings(server)) as service, service.client("alice") as client:
        worked(client, retain(client, task))
        return client.post("/v1/retrieve", json={"agent": "a", "query": "water the garden"})


def test_the_same_model_at_another_dimension_is_another_space():
    with migrated_home() as home, OpenAIServer(64) as narrow, OpenAIServer(96) as wide:
        first = served(home, narrow, "water the garden").json()
        assert (first["mode"], first["degraded"]) == ("hybrid", [])
        between = served(home, wide, "water the garden again, with the long hose")
        assert between.status_code == 200, between.text
        assert between.json()["degraded"] == ["embedding_model"]
        assert len(between.json()["cases"]) == 2
        assert "1 cases embedded" in casebank(home, "reembed", **settings(wide)).stdout
        with Service(home, **settings(wide)) as service, service.client("alice") as client:
            after = retrieve(client, "water the garden")
        assert (after["mode"], after["degraded"], len(after["cases"])) == ("hybrid", [], 2)
        assert all(case["similarity"] is not None for case in after["cases"])
