"""Reads the candidates of a query: exactly, with the HNSW index, or by distances that this process computes."""

from dataclasses import dataclass, field
from uuid import UUID

import numpy as np
from cachetools import LRUCache

from retrieval.database.fast_path import FastConnection
from retrieval.search.candidates import Candidate, CaseSearch, candidates, vectors
from retrieval.search.profile_settings import ProfileSettings
from retrieval.search.scope import Scope


@dataclass(frozen=True, slots=True)
class CandidateReader:
    """Reads candidates, and remembers which profiles are in the HNSW index: only their first search is exact."""

    _indexed: LRUCache[tuple[str, str], bool] = field(default_factory=lambda: LRUCache(10_000))

    async def read(
        self, connection: FastConnection, search: CaseSearch, *, pgvector: bool
    ) -> tuple[ProfileSettings | None, list[Candidate]]:
        """Returns the settings of the profile, None if there is no such profile yet, and the candidates.

        ``pgvector`` says whether the database compares vectors; otherwise this process does.
        """
        profile = connection.user_sub, search.agent_key
        measured: dict[UUID, float] | None = None
        if search.vector is not None and not pgvector:
            of_bank = await connection.all(
                vectors(Scope.of(search.agent_key)), {"agent_key": search.agent_key, "model": search.model}
            )
            usable = [row for row in of_bank if len(row.embedding) == len(search.vector)]
            bank = np.array([row.embedding for row in usable], dtype=np.float32)  # (cases, dimension)
            distances = 1 - bank @ np.array(search.vector, dtype=np.float32) if usable else bank  # cosine
            measured = dict(zip([row.case_id for row in usable], distances.tolist(), strict=True))
        rows = await connection.all(*candidates(search, measured, approximate=profile in self._indexed))
        self._indexed.pop(profile, None)
        if not rows:
            return None, []
        if rows[0].approximate:
            self._indexed[profile] = True
        return rows[0], [row for row in rows if row.id is not None]
