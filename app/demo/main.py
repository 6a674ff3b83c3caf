"""Runs the demo against its own service, which it starts like `casebank serve` and stops at the end."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from app.demo.files import write_files
from app.demo.learning import Learner, show_learning
from app.demo.operator.house import House
from app.demo.operator.operator import STEP_BUDGET
from app.demo.report import DemoReport, print_report
from app.demo.run import AGENT, Place, run_stream, run_with_memory
from app.processes.own_service import own_service
from app.runtime import owner_url
from app.settings import Settings


class TorchMissing(OSError):
    """Raised when learning needs torch, which is not installed."""


async def demo(
    settings: Settings, *, tasks: int, seeds: Sequence[int], out_dir: Path, learn: bool = False
) -> DemoReport:
    """Runs each house's tasks in the three arms, prints the report, and lists the next commands.

    Each house has its own user in casebank, and so starts with an empty bank.

    Args:
        settings: settings of the service.
        tasks: number of tasks of each house.
        seeds: seeds of the houses; the same seed gives the same house.
        out_dir: folder of the plot and the numbers.
        learn: true: also train on the log of the first house and try the learned policy.

    Raises:
        TorchMissing: learning needs torch, which is not installed.
    """
    if learn and find_spec("torch") is None:
        raise TorchMissing("learning needs torch: `make demo-learning` installs it, or pip install 'casebank[train]'")
    console = Console()
    users = [f"demo-{datetime.now(UTC):%Y%m%d-%H%M%S}-{seed}" for seed in seeds]
    async with owner_url(settings) as scratch_dsn, own_service(settings) as service:
        places = [Place(service.base_url, service.headers(user), scratch_dsn) for user in users]
        houses = [House(seed, tasks) for seed in seeds]
        pairs = zip(places, houses, strict=True)
        streams = [await run_stream(place, house, console=console) for place, house in pairs]
        report = DemoReport(STEP_BUDGET, streams)
        report = replace(report, files=write_files(report, out_dir))
        print_report(report, console)
        if learn:
            learner = Learner(settings, users[0], AGENT, out_dir)
            with_memory = partial(run_with_memory, places[0], console=console)
            await show_learning(learner, with_memory, houses[0], console)
    if not learn:
        console.print("\nTo see how casebank learns which memories help, run `make demo-learning` (it installs torch).")
    user = users[0]
    next_commands = (
        "\nNext commands:\n"
        "  .venv/bin/casebank serve   starts the service again; its API is at http://127.0.0.1:8700/docs\n"
        f"  .venv/bin/casebank console --user {user}   then opens the overview of this bank, http://127.0.0.1:8700/console\n"
        f"  .venv/bin/casebank token --user {user}   prints a token for this bank\n"
        f"  .venv/bin/casebank export --user {user}  prints the whole bank as JSON lines\n"
        f"  .venv/bin/casebank policy show --user {user} --agent {AGENT}   shows the learned policy and its verdict\n"
        f"  .venv/bin/casebank purge --user {user}   deletes the bank, with a receipt"
    )
    console.print(next_commands, markup=False, highlight=False)
    return report
