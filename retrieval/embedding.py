"""Embeds queries, and in the same call the sentences that calibrate a new embedding model."""

from collections.abc import Sequence
from dataclasses import replace

from policy.channels import normalised
from retrieval.errors import EmbedderError, EmbedderMisbehaved, EmbedderRefused, TextNotEmbeddable
from retrieval.ports import Embedder, Vector
from retrieval.procedures.threshold import Calibrations
from retrieval.search.candidates import CaseSearch
from retrieval.telemetry import stage


async def embedded(embedder: Embedder, search: CaseSearch, calibrations: Calibrations) -> tuple[CaseSearch, list[str]]:
    """Returns the search with the vectors of its query and its parts, and a list of reasons.

    If the embedder fails, the search is returned without vectors, and the list says why.
    """
    sentences = calibrations.wanted(embedder.model)
    parts = [normalised(part) for part in search.parts]
    with stage("retrieve.embed"):
        try:
            vector, *others = await _vectors(embedder, normalised(search.query), [*parts, *sentences])
        except TextNotEmbeddable:
            return search, ["query_not_embeddable"]
        except EmbedderError:
            return search, ["embedder"]
    if sentences:
        calibrations.learn(embedder.model, others[len(parts) :])
    of_parts = [each.tolist() for each in others[: len(parts)]]
    return replace(search, vector=vector.tolist(), part_vectors=of_parts, model=embedder.model), []


async def _vectors(embedder: Embedder, query: str, others: Sequence[str]) -> Sequence[Vector]:
    """Returns the vectors of the query and of the others; only the query's if the embedder refuses the others."""
    try:
        return list(await embedder.embed([query, *others]))
    except (EmbedderRefused, EmbedderMisbehaved):
        if not others:
            raise
    return list(await embedder.embed([query]))
