"""New users of the demo's fleet are run beside no memory, keyword memory and others, and told as it is."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

import httpx
import pytest
from rich.console import Console

from app.demo.arms import Arm, TaskRecord
from app.demo.files import write_fleet_files
from app.demo.fleet import CANARY, NEW, FleetReport, Runs, show_fleet
from app.demo.learning import TrainingReport
from app.demo.operator.house import House
from app.demo.run import AGENT, Place
from tests.app.demo.trainings import Trainings
from tests.service import Service, service  # noqa: F401 - the fixture
from writer.training.shared_prior import FEWEST_USERS

RECORD = TaskRecord("a-0", "a", "Add it", 8, True, False, False, False, 0, 0, 0, None, 1.0)
LENGTH = 100


@dataclass(frozen=True, slots=True)
class Inside(Place):
    """Where a user works whose service runs in this process."""

    app: Any

    def client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app), base_url=self.base_url, headers=dict(self.headers)
        )


@dataclass
class Told:
    """What a demo of a fleet said, did and left."""

    said: str
    report: FleetReport | None
    settle: Callable[[str], Place]
    asked: list[tuple[Place, str, House]]


async def shown(service: Service, steps: int, *reports: TrainingReport, users: int = FEWEST_USERS) -> Told:  # noqa: F811
    """Members of the fleet take so many steps, others ten, keyword memory nine, and no memory twelve."""
    console = Console(width=200, record=True, file=StringIO())
    asked = []

    def settle(user: str) -> Place:
        headers = {"Authorization": f"Bearer {service.token(user)}"}
        return Inside("http://casebank", headers, "", service.app)

    def arm(name: str, house: House, taken: int) -> Arm:
        return Arm(name, [replace(RECORD, steps=taken, family=str(each % 10)) for each in range(house.length)])

    async def rivals(place: Place, house: House) -> tuple[Arm, Arm]:
        return arm("no memory", house, 12), arm("keyword memory", house, 9)

    async def with_memory(place: Place, name: str, house: House) -> Arm:
        asked.append((place, name, house))
        return arm(name, house, steps if name == "in the fleet" else 10)

    known = [(f"demo-{number}", House(number, LENGTH)) for number in range(users)]
    report = await show_fleet(Trainings(list(reports)), Runs(settle, rivals, with_memory), known, console)
    return Told(console.export_text(), report, settle, asked)


def written(report: FleetReport, folder: Path) -> dict[str, Any]:
    """The numbers that it leaves behind, beside a picture."""
    files = write_fleet_files(report, 14, folder)
    assert Path(files["png"]).stat().st_size > 10_000
    return json.loads(Path(files["json"]).read_text())


async def settings(place: Place) -> dict[str, Any]:
    async with place.client() as client:
        found: dict[str, Any] = (await client.get(f"/v1/profiles/{AGENT}")).json()
    return found


TRAINED = TrainingReport(outcome="candidate", decisions=600)
NOT_TRIED = TrainingReport(outcome="serves nearly the same slates", decisions=600)
JUDGED = TrainingReport(outcome="insufficient evidence", decisions=500)


@pytest.mark.parametrize(("steps", "verdict"), [(7, "it helps them"), (10, "no effect is shown")])
async def test_members_and_others_do_the_same_new_houses_and_what_it_is_worth_is_told(
    service: Service,  # noqa: F811
    steps: int,
    verdict: str,
    tmp_path: Path,
):
    told = await shown(service, steps, TRAINED, JUDGED)
    assert [(name, house.seed) for _, name, house in told.asked] == [
        (name, number + NEW) for number in range(FEWEST_USERS) for name in ("in the fleet", "outside the fleet")
    ]
    assert verdict in told.said
    assert "the gate's verdict, from the decisions of all members: insufficient evidence" in told.said
    assert told.report is not None
    assert written(told.report, tmp_path)["members_against_others"]["steps"][0] == pytest.approx(steps / 10 - 1)


async def test_the_users_give_and_members_alone_receive(service: Service):  # noqa: F811
    told = await shown(service, 7, TRAINED, JUDGED)
    giver, member = await settings(told.settle("demo-0")), await settings(told.settle("demo-0-member"))
    assert (giver["fleet"], member["fleet"]) == ("both", "receive")
    assert member["canary"] == pytest.approx(CANARY)
    places = {name: place for place, name, _ in told.asked}
    async with places["outside the fleet"].client() as client:
        assert (await client.get(f"/v1/profiles/{AGENT}")).status_code == 404  # nothing was ever set there


async def test_where_nothing_is_tried_members_alone_are_run_for_others_are_served_alike(
    service: Service,  # noqa: F811
    tmp_path: Path,
):
    told = await shown(service, 7, NOT_TRIED)
    assert {name for _, name, _ in told.asked} == {"in the fleet"}
    assert "new users start with the untrained default" in told.said
    assert "the gate's verdict" not in told.said
    assert told.report is not None
    assert written(told.report, tmp_path)["members_against_others"] is None


@pytest.mark.parametrize("report", [TRAINED, NOT_TRIED])
@pytest.mark.parametrize(("steps", "verdict"), [(7, "beats"), (9, "does not beat"), (10, "does not beat")])
async def test_new_users_are_set_beside_no_memory_and_keyword_memory_and_a_miss_is_told(
    service: Service,  # noqa: F811
    steps: int,
    verdict: str,
    report: TrainingReport,
    tmp_path: Path,
):
    told = await shown(service, steps, report, JUDGED)
    said = " ".join(told.said.split())
    assert f"casebank in the fleet {verdict} keyword memory: steps {steps / 9 - 1:+.0%}" in said
    assert "no memory 12.0 100% 0% keyword memory 9.0 100% 0%" in said  # the table
    assert f"seed {NEW}: no memory 12.0 steps, 100%, first try 0%; keyword memory 9.0 steps" in said
    assert told.report is not None
    numbers = written(told.report, tmp_path)
    assert numbers["members_against_keyword_memory"]["steps"][0] == pytest.approx(steps / 9 - 1, abs=1e-4)
    assert numbers["members_against_keyword_memory"]["beats_keyword_memory"] == (verdict == "beats")
    assert [each["seed"] for each in numbers["streams"]] == [number + NEW for number in range(FEWEST_USERS)]
    assert {"no memory", "keyword memory", "in the fleet"} <= set(numbers["streams"][0]["arms"])


async def test_too_few_users_are_told_how_many_it_takes(service: Service):  # noqa: F811
    told = await shown(service, 7, users=1)
    assert told.report is None
    assert "casebank demo --learn --seed 0 --seed 1" in told.said
