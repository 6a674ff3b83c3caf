"""Runs the demo against a service of its own: started as `casebank serve` would be, stopped at the end."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from app.demo.files import write_files, write_fleet_files
from app.demo.fleet import Runs, show_fleet
from app.demo.learning import Learner, show_learning
from app.demo.operator.house import House
from app.demo.operator.operator import STEP_BUDGET
from app.demo.report import DemoReport, print_report
from app.demo.run import AGENT, Place, run_rivals, run_stream, run_with_memory
from app.processes.own_service import own_service
from app.runtime import owner_url
from app.settings import Settings


class TorchMissing(OSError):
    """Learning was asked for, and torch is not installed."""


async def demo(
    settings: Settings, *, tasks: int, seeds: Sequence[int], out_dir: Path, learn: bool = False
) -> DemoReport:
    """Runs each house's tasks in the three arms, prints the report, and says where to look next.

    casebank remembers each house under a user of its own, so that it begins with an empty bank.

    Args:
        settings: of the service.
        tasks: of each house.
        seeds: the same seed is the same house.
        out_dir: where the plot and the numbers go.
        learn: whether to train on the log of the first house, too, and to put what was learned on trial; and, where
            there are five houses, what all of them learned on new users.

    Raises:
        TorchMissing: what trains is not installed.
    """
    if learn and find_spec("torch") is None:
        raise TorchMissing("learning needs torch: `make demo-learning` installs it, or pip install 'casebank[train]'")
    console = Console()
    users = [f"demo-{datetime.now(UTC):%Y%m%d-%H%M%S}-{seed}" for seed in seeds]
    async with owner_url(settings) as scratch_dsn, own_service(settings) as service:

        def settle(user: str) -> Place:
            return Place(service.base_url, service.headers(user), scratch_dsn)

        run = partial(run_with_memory, console=console)
        places = [settle(user) for user in users]
        houses = [House(seed, tasks) for seed in seeds]
        pairs = zip(places, houses, strict=True)
        streams = [await run_stream(place, house, console=console) for place, house in pairs]
        report = DemoReport(STEP_BUDGET, streams)
        report = replace(report, files=write_files(report, out_dir))
        print_report(report, console)
        if learn:
            learner = Learner(settings, users[0], AGENT, out_dir)
            await show_learning(learner, partial(run, places[0]), houses[0], console)
            everybody = replace(learner, user=None)
            runs = Runs(settle, partial(run_rivals, console=console), run)
            fleet = await show_fleet(everybody, runs, list(zip(users, houses, strict=True)), console)
            files = {} if fleet is None else write_fleet_files(fleet, STEP_BUDGET, out_dir)
            for kind, path in files.items():
                console.print(f"  {kind}: {path}")
    if not learn:
        console.print("\nIt also learns which memories help: `make demo-learning` (it installs torch) shows how.")
    console.print(_where_to_look_next(users[0]), markup=False, highlight=False)
    return report


def _where_to_look_next(user: str) -> str:
    return (
        "\nWhere to look next:\n"
        "  .venv/bin/casebank serve   keep the service running; the API is at http://127.0.0.1:8700/docs\n"
        f"  .venv/bin/casebank console --user {user}   then opens this bank's overview, http://127.0.0.1:8700/console\n"
        f"  .venv/bin/casebank token --user {user}   a token that sees what this demo remembered\n"
        f"  .venv/bin/casebank export --user {user}  all of it, as JSON lines\n"
        f"  .venv/bin/casebank policy show --user {user} --agent {AGENT}   what was learned, and the verdict\n"
        f"  .venv/bin/casebank purge --user {user}   deletes it all, with a receipt"
    )
