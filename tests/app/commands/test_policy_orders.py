"""``casebank policy orders``: sums over the profiles with enough runs, for the operator."""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import insert
from typer.testing import CliRunner, Result

from app.cli import cli
from app.postgres.pools import service_database
from policy.fit import fit_of
from policy.replay import CHOICE, Tally
from policy.weights import pack_fit
from retrieval.database.database import Database
from retrieval.tables.profiles import profiles, replays
from tests.policy.banks import history, shop
from writer.replays.profile_replay import SPOKEN
from writer.rights.erase import erase

NOW = datetime.now(UTC) - timedelta(hours=1)


async def put(database: Database, user: str, questions: int, first: Mapping[str, float], serves: str) -> None:
    """Stores a replay in which the orders that are not named were never right."""
    tallies = {name: asdict(Tally(first.get(name, 0.0), 0.5, 10.0)) for name in SPOKEN}
    mine = {"user_sub": user, "agent_key": "shop"}
    numbers = {"runs": questions + 100, "questions": questions, "serves": serves, "newest": NOW}
    async with database.as_user(user, NOW) as connection:
        await connection.execute(insert(profiles).values(mine))
        await connection.execute(
            insert(replays).values(mine | numbers | {"tallies": tallies, "fit": pack_fit(fit_of(history(shop(3))))})
        )


async def casebank(*words: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, cli, ["policy", "orders", *words])


async def test_the_orders_are_summed_over_the_profiles_with_enough_runs_and_no_user_is_named(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    variables = {
        "CASEBANK_HOME": str(tmp_path),
        "DATABASE_URL": database_url,
        "CASEBANK_MASTER_KEY": "5" * 64,
        "CASEBANK_FIRST_ORDER": "rare",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    nobody = await casebank()
    assert nobody.exit_code == 0
    assert nobody.stdout.startswith("0 profiles with at least 20 questions in their replay, 0 in all (a question: ")
    async with service_database(database_url) as database:
        await put(database, "anna", 30, {"words": 0.9, CHOICE: 0.8}, "words")
        await put(database, "ben", 90, {"words": 0.5, "vote": 0.4}, "vote")
        await put(database, "few", 19, {"meaning": 1.0}, "meaning")
        await put(database, "gone", 50, {"meaning": 1.0}, "meaning")
        await erase(database, "gone")
    shown = await casebank()
    assert shown.stdout.startswith("2 profiles with at least 20 questions in their replay, 120 in all ")
    lines = ([cell.strip() for cell in line.split("│")[1:-1]] for line in shown.stdout.splitlines() if "│" in line)
    rows = {name: cells for name, *cells in lines}
    assert rows["words"] == ["words in common", "60.0%", "20.0", "1"]
    assert rows["rare"] == ["rare words in common", "0.0%", "20.0", "0"]
    assert rows["meaning"] == ["meaning", "0.0%", "20.0", "0"]
    assert rows["vote"][1:4] == ["30.0%", "20.0", "1"]
    assert rows[CHOICE][1:4] == ["20.0%", "20.0", "2"]
    assert "new ones start with rare" in shown.stdout
    assert not any(name in shown.output for name in ("anna", "ben", "few", "gone", "shop"))
    assert (await casebank("--at-least", "19")).stdout.startswith("3 profiles")
