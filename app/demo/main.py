"""Runs the demo against a service of its own: started as `casebank serve` would be, stopped at the end."""

from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from app.demo.learning import Learner, show_learning
from app.demo.report import Arm, DemoReport
from app.demo.run import AGENT, run_demo, run_with_memory
from app.own_service import own_service
from app.runtime import owner_url
from app.settings import Settings


async def demo(settings: Settings, *, tasks: int, seed: int, out_dir: Path) -> DemoReport:
    """Runs the stream without and with memory, prints the report, and says where to look next.

    Each run remembers under a user of its own, so that it begins with an empty bank.
    """
    console = Console()
    user = f"demo-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    async with owner_url(settings) as scratch_dsn, own_service(settings) as service:
        base_url, token = service.base_url, service.token(user)
        report = await run_demo(base_url, token, scratch_dsn, seed=seed, tasks=tasks, out_dir=out_dir, console=console)

        async def again(name: str, other_seed: int) -> Arm:
            return await run_with_memory(
                base_url, token, scratch_dsn, name=name, seed=other_seed, tasks=tasks, console=console
            )

        await show_learning(Learner(settings, user, AGENT, out_dir), again, seed, console)
    console.print(
        "\nWhere to look next:\n"
        "  make serve                            keep the service running; the API is at http://127.0.0.1:8700/docs\n"
        f"  .venv/bin/casebank token --user {user}   a token that sees what this demo remembered\n"
        f"  .venv/bin/casebank export --user {user}  all of it, as JSON lines\n"
        f"  .venv/bin/casebank policy show --user {user} --agent {AGENT}   what was learned, and the verdict\n"
        f"  .venv/bin/casebank purge --user {user}   and gone again, with a receipt",
        markup=False,
        highlight=False,
    )
    return report
