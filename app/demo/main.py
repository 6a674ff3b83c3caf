"""Runs the demo against a service of its own: started as `casebank serve` would be, stopped at the end."""

from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from app.demo.learning import Learner, show_learning
from app.demo.report import DemoReport
from app.demo.run import AGENT, Place, Stream, run_demo, run_with_memory
from app.own_service import own_service
from app.runtime import owner_url
from app.settings import Settings


class TorchMissing(OSError):
    """Learning was asked for, and torch is not installed."""


async def demo(settings: Settings, *, tasks: int, seed: int, out_dir: Path, learn: bool = False) -> DemoReport:
    """Runs the stream without and with memory, prints the report, and says where to look next.

    Each run remembers under a user of its own, so that it begins with an empty bank.

    Args:
        settings: of the service.
        tasks: length of the stream.
        seed: the same seed is the same stream.
        out_dir: where the plot and the numbers go.
        learn: whether to train on what was logged, too, and to put what was learned on trial.

    Raises:
        TorchMissing: what trains is not installed.
    """
    if learn and find_spec("torch") is None:
        raise TorchMissing("learning needs torch: `make demo-learning` installs it, or pip install 'casebank[train]'")
    console = Console()
    user = f"demo-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    async with owner_url(settings) as scratch_dsn, own_service(settings) as service:
        place = Place(service.base_url, service.headers(user), scratch_dsn)
        report = await run_demo(place, Stream(seed, tasks), out_dir=out_dir, console=console)
        if learn:
            learner = Learner(settings, user, AGENT, out_dir)
            await show_learning(learner, partial(run_with_memory, place, console=console), report, console)
    if not learn:
        console.print("\nIt also learns which memories help: `make demo-learning` (it installs torch) shows how.")
    console.print(_where_to_look_next(user), markup=False, highlight=False)
    return report


def _where_to_look_next(user: str) -> str:
    return (
        "\nWhere to look next:\n"
        "  make serve                            keep the service running; the API is at http://127.0.0.1:8700/docs\n"
        f"  .venv/bin/casebank console --user {user}   opens this bank's overview, http://127.0.0.1:8700/console\n"
        f"  .venv/bin/casebank token --user {user}   a token that sees what this demo remembered\n"
        f"  .venv/bin/casebank export --user {user}  all of it, as JSON lines\n"
        f"  .venv/bin/casebank policy show --user {user} --agent {AGENT}   what was learned, and the verdict\n"
        f"  .venv/bin/casebank purge --user {user}   deletes it all, with a receipt"
    )
