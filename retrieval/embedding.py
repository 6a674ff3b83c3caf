"""Embeds queries, and in the same call what else needs vectors: names of tools, and the sentences of a calibration."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from retrieval.errors import EmbedderError, EmbedderMisbehaved, EmbedderRefused, TextNotEmbeddable
from retrieval.ports import Embedder, Vector
from retrieval.procedures.threshold import Calibrations
from retrieval.ranking.tool_counts import NOT_KNOWN, ToolVectors, words_of
from retrieval.search.candidates import Search
from retrieval.telemetry import stage


@dataclass(frozen=True, slots=True)
class QueryEmbedding:
    """Embeds queries, and caches the vectors of tool names and each model's similarity of unrelated texts."""

    tools: ToolVectors = field(default_factory=ToolVectors)
    calibrations: Calibrations = field(default_factory=Calibrations)

    async def embed(self, embedder: Embedder, search: Search) -> tuple[Search, list[str]]:
        """Returns the search with the query's vector; without one, the search as it is and the reason."""
        names = self.tools.wanted()
        sentences = self.calibrations.wanted(embedder.model)
        with stage("retrieve.embed"):
            try:
                vector, *others = await _vectors(embedder, search.query, [*sentences, *map(words_of, names)])
            except TextNotEmbeddable:
                return search, ["query_not_embeddable"]
            except EmbedderError:
                return search, ["embedder"]
        measured = [each for each in others[: len(sentences)] if len(each)]
        if measured or not names:  # without either, a name may have spoiled the answer: measure another time
            self.calibrations.learn(embedder.model, measured)
        self.tools.learn(dict(zip(names, others[len(sentences) :], strict=True)))
        return replace(search, vector=vector.tolist(), model=embedder.model), []


async def _vectors(embedder: Embedder, query: str, others: Sequence[str]) -> Sequence[Vector]:
    """Returns the vectors of the query and of the others; others that spoil the answer get NOT_KNOWN, for good."""
    try:
        return list(await embedder.embed([query, *others]))
    except (EmbedderRefused, EmbedderMisbehaved):
        if not others:
            raise
    # other users' tools may be among them: an error in one must not fail this query
    (vector,) = await embedder.embed([query])
    return [vector, *[NOT_KNOWN] * len(others)]
