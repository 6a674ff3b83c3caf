"""No user's name stands in a process's arguments, which everybody on the machine can read."""

import asyncio
import json
import subprocess
from contextlib import suppress
from pathlib import Path

import psutil

from app.postgres.pools import one_connection
from app.processes.own_module import OWN_MODULE
from app.settings import Settings
from app.training.processes import Trainings
from tests.paths import ROOT
from tests.processes import surroundings

NAME = "a-name-that-nobody-else-has"


async def test_a_training_that_the_service_starts_is_told_the_user_where_nobody_else_can_read_it(
    database_url: str, tmp_path: Path
):
    trainings = Trainings(Settings(home=tmp_path, database_url=database_url, master_key="5" * 64))
    trainings.start(NAME, "agent-of-theirs")
    seen: list[str] = []
    async with asyncio.timeout(60):
        while "train" not in seen:
            await asyncio.sleep(0.01)
            for child in psutil.Process().children():
                with suppress(psutil.Error):  # children of other tests end
                    seen += child.cmdline()
    await trainings.close()
    assert [word for word in seen if NAME in word or "theirs" in word] == []


def test_the_profile_of_standard_input_is_the_one_that_is_trained(database_url: str, tmp_path: Path):
    async def insert() -> None:
        async with one_connection(database_url) as owner:
            await owner.execute("INSERT INTO profiles (user_sub, agent_key) VALUES ($1, 'a'), ($1, 'b')", NAME)

    asyncio.run(insert())
    done = subprocess.run(
        [*OWN_MODULE, "app.cli", "train", "--profile-from-stdin"],
        input=json.dumps({"user": NAME, "agent": "a"}),
        env=surroundings(tmp_path, DATABASE_URL=database_url, CASEBANK_MASTER_KEY="5" * 64),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(NAME) == 1
