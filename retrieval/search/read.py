"""Reads the candidates of a query: exactly, with the HNSW index, or by distances that this process computes."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

import numpy as np
from cachetools import LRUCache

from retrieval.database.fast_path import FastConnection
from retrieval.search.candidates import BankRow, CaseSearch, candidates, vectors


@dataclass(frozen=True, slots=True)
class CandidateReader:
    """Reads candidates, and remembers which profiles are in the HNSW index: only their first search is exact."""

    _indexed: LRUCache[tuple[str, str], bool] = field(default_factory=lambda: LRUCache(10_000))

    async def read(
        self, connection: FastConnection, search: CaseSearch, *, pgvector: bool
    ) -> tuple[CaseSearch, Sequence[BankRow]]:
        """Returns the rows of the search, and the search with the way in which it was made.

        ``pgvector`` says whether the database compares vectors; otherwise this process does.
        """
        profile = connection.user_sub, search.agent_key
        if search.vector is not None and not pgvector:
            of_bank = await connection.all(*vectors(search))
            usable = [row for row in of_bank if len(row.embedding) == len(search.vector)]
            measured: dict[UUID, float] = {}
            if usable:
                bank = np.array([row.embedding for row in usable], dtype=np.float32)  # (cases, dimension)
                distances = 1 - bank @ np.array(search.vector, dtype=np.float32)  # cosine
                measured = dict(zip([row.case_id for row in usable], distances.tolist(), strict=True))
            search = replace(search, measured=measured)
        elif profile in self._indexed:
            search = replace(search, approximate=True)
        rows = await connection.all(*candidates(search))
        self._indexed.pop(profile, None)
        if rows and rows[0].approximate:
            self._indexed[profile] = True
        return search, rows
