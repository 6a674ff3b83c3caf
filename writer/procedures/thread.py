"""Computation on a run beside the event loop; for a short run a thread would cost as much as the computation."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from writer.analysis.calls import StoredRun

P = ParamSpec("P")
R = TypeVar("R")


async def computed(run: StoredRun, compute: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
    """Returns the result of a computation that reads the run: made at once for a short run, in a thread for others."""
    if run.is_short:
        return compute(*arguments, **named)
    return await asyncio.to_thread(compute, *arguments, **named)
