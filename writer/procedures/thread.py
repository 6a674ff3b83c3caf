"""Runs computations on a run beside the event loop; for a short run, a thread would cost more than the computation."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from writer.analysis.calls import StoredRun

P = ParamSpec("P")
R = TypeVar("R")


async def computed(run: StoredRun, compute: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
    """Returns the result of a computation on a run, made on the event loop for a short run, else in a thread."""
    if run.is_short:
        return compute(*arguments, **named)
    return await asyncio.to_thread(compute, *arguments, **named)
