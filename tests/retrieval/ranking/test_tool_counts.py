"""The vectors of tools' names: what an embedder refuses harms no query."""

from collections.abc import Sequence

from retrieval.errors import EmbedderRefused
from retrieval.ports import Vectors
from retrieval.retrieve import Reader
from tests.retrieval.conftest import EMBEDDER, ask, walls
from tests.writer.conftest import Bank
from writer.upkeep.reembed import reembed


class Fussy:
    """An embedder that takes no name of a tool beside a query."""

    model, dimension = EMBEDDER.model, EMBEDDER.dimension

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if len(texts) > 1:
            raise EmbedderRefused("one text at a time")
        return await EMBEDDER.embed(texts)


async def test_a_tool_whose_name_the_embedder_refuses_takes_no_query_down(bank: Bank, user: str):
    fussy = Reader(bank.database, Fussy())
    await walls(bank, user)
    await bank.add(user, *({"task": f"clean brush {n}", "effects": ["paint", f"clean_{n}"]} for n in range(3)))
    await reembed(bank.database, EMBEDDER, bank.profile(user))
    for _ in range(3):
        slate = await ask(fussy, user)
        assert (slate.mode, slate.degraded) == ("hybrid", [])
