"""What runs by the clock inside the service: pruning, and the index of large profiles."""

import asyncio
from datetime import UTC, datetime, timedelta

from app.runtime import Runtime
from retrieval.errors import CasebankError
from retrieval.telemetry import log
from writer.upkeep.hnsw import index_all
from writer.upkeep.prune import prune_all


async def upkeep(runtime: Runtime) -> None:
    """Prunes every profile and sees which are large, again and again, until cancelled."""
    kept = timedelta(days=runtime.settings.pruned_kept_days)
    while True:
        await asyncio.sleep(runtime.settings.upkeep_every_s)
        try:
            pruned = await prune_all(runtime.database, now=datetime.now(UTC), kept=kept)
            moved = await index_all(runtime.database)
        except CasebankError as error:
            log.warning("upkeep.failed", error=type(error).__name__)
        else:
            log.info("upkeep.pruned", soft=pruned.soft, hard=pruned.hard, indexed=moved)
