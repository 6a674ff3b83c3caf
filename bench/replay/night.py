"""The whole night of one trainer: each profile is read, replayed and stored, and looked at for a trial."""

import time
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import delete

from app.postgres.pools import service_database
from bench.measure import Measurement
from bench.real import remembered, skipped
from policy.train import train
from retrieval.tables.profiles import replays
from writer.training.candidates import Recipe
from writer.training.nightly import learn

PROFILES, RUNS, NIGHT_PROFILES, AIM_S = 15, 40, 10_000, 300
NAME = f"night of {NIGHT_PROFILES:,} profiles, reading and storing included"


async def night(home: Path, data: Path | None) -> Measurement:
    """Measures a trainer's time for profiles of real runs whose replay is due, times as many as a night has."""
    async with remembered(home, data, users=PROFILES, count=PROFILES * RUNS) as bank:
        if bank is None:
            return skipped(NAME)
        async with service_database(bank.url) as database:
            for number in range(PROFILES):  # the worker replayed them by day
                async with database.as_user(bank.user(number), datetime.now(UTC)) as connection:
                    await connection.execute(delete(replays))
            began = time.perf_counter()
            done = [result async for result in learn(database, Recipe(train))]
            a_profile = (time.perf_counter() - began) / len(done)
    detail = f"one trainer, {1e3 * a_profile:.1f} ms for each of {len(done)} profiles of {RUNS} real runs"
    return Measurement(NAME, a_profile * NIGHT_PROFILES, "s", detail, AIM_S)
