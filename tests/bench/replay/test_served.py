"""The memory of a closed loop that is the running service."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from app.processes.own_service import own_service
from app.settings import Settings
from bench.replay.runs import Run
from bench.replay.served import First, Served, ServedBank, played
from bench.replay.shops.parcels import PARCELS
from bench.replay.shops.shop import done
from bench.replay.shops.world import ShopWorld
from tests.processes import migrated_home


@pytest.fixture
def home() -> Iterator[Path]:
    with migrated_home() as home:
        yield home


async def test_the_plans_told_are_the_calls_of_the_runs_that_the_services_text_quotes(home: Path):
    plan = (done("find_order", {"order": "F1234"}), done("refund", {"order": "F1234", "method": "store_credit"}))
    async with own_service(Settings(home=home)) as service:
        with httpx.Client(base_url=service.base_url, headers=service.headers("ann")) as client:
            bank = ServedBank(client, "clerk")
            assert bank.recall("refund the order F1234", None) == []
            bank.keep(Run("refund the order F1234", plan, succeeded=True, day=0, kind=""))
            assert bank.recall("refund the order F9999", None) == [plan]
            assert bank.recall("refund the order F9999", "it was refused") == [plan]
            for kind in ("", "another"):
                bank.recall("refund the order F9999", None)
                bank.keep(Run("refund the order F9999", plan, succeeded=True, day=0, kind=kind))
            assert bank.firsts == [First(procedure=True, case=True), First(procedure=False, case=False)]


async def test_each_seed_of_a_world_is_played_by_a_user_of_its_own(home: Path):
    world = ShopWorld(replace(PARCELS, kinds=PARCELS.kinds[:3]), tasks=3)
    loops = (await played(home, [world], [100, 101])).loops[world.name]
    assert [len(loop.played) for loop in loops] == [3, 3]
    assert all(each.solved for loop in loops for each in loop.played)


def test_a_world_none_of_whose_texts_has_a_procedure_and_a_case_has_no_row():
    firsts = [First(procedure=False, case=True), First(procedure=True, case=True)]
    (row,) = Served({}, {"shop": firsts, "silent": []}).rows()
    assert (row.value, row.detail) == (0.5, "first case of the same 2 texts 1.000")
