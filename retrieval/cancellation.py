"""Tells whether a task was cancelled, for code below which a library may turn a cancellation into another error."""

import asyncio


def is_cancelled() -> bool:
    """Returns whether somebody cancelled the task that runs."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
