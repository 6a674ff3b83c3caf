"""Opens a memory on an existing home in a new process; prints the seconds until its first answer, and its bytes.

``python -m bench.peers.cold MODULE OPENER HOME USER TEXT BEGAN``. It imports no casebank by itself.
"""

import asyncio
import json
import sys
import time
from importlib import import_module
from pathlib import Path


async def opened_anew(module: str, opener: str, home: str, *query: str) -> None:
    """Opens the memory, asks the query of its user, and prints both numbers as JSON."""
    user, text, began = query
    async with getattr(import_module(module), opener)(Path(home)) as memory:
        await asyncio.to_thread(memory.search, user, text)
        seconds = time.time() - max(float(began), memory.began)
        print(json.dumps([seconds, memory.resident_bytes()]))


if __name__ == "__main__":
    asyncio.run(opened_anew(*sys.argv[1:]))
