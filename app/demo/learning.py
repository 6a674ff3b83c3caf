"""The demo's last part: train on what was logged, put the candidate on trial, and hear the gate's verdict."""

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from app.demo.report import Arm
from app.settings import Settings

Stream = Callable[[str, int], Coroutine[Any, Any, Arm]]
"""Runs a stream with memory under a name, with this seed, on the bank as it is."""


@dataclass(frozen=True, slots=True)
class Learner:
    """Whose log is learned from, and where the report goes."""

    settings: Settings
    user: str
    agent: str
    out_dir: Path

    async def train(self) -> dict[str, Any]:
        """Trains and judges in a process of its own, as every night would; returns what became of the profile."""
        folder = self.out_dir / "training"
        options = [f"--user={self.user}", f"--agent={self.agent}", f"--out-dir={folder}"]
        quiet = asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "app.training", *options),
            stdout=quiet,
            stderr=quiet,
            env=self.settings.as_environment(),
        )
        if await process.wait():
            return {"outcome": "the training failed; `casebank train` shows why", "decisions": 0, "verdict": None}
        (learnt,) = json.loads((folder / "train.json").read_text())
        return dict(learnt)


async def show_learning(learner: Learner, stream: Stream, seed: int, console: Console) -> None:
    """Trains, runs a second stream with the candidate on trial, judges, and says which policy serves from now on."""
    console.rule("Learning which memories help")
    first = await learner.train()
    console.print(f"  trained on {first['decisions']} rewarded retrievals: {first['outcome']}", markup=False)
    if first["outcome"] != "candidate":
        console.print("  the untrained default goes on", markup=False)
        return
    gain, error = first["metrics"]["log_loss_gain"], first["metrics"]["log_loss_gain_error"]
    console.print(
        f"  it foretells {first['metrics']['held_out']} later rewards better than the default by {gain:+.3f} nats"
        f" (standard error {error:.3f}); q-{first['version']} now serves a quarter of the decisions, on trial",
        markup=False,
    )
    trial = (await stream("on trial", seed + 1)).totals()
    console.print(
        f"  second stream, seed {seed + 1}: {trial['steps_per_task']:.1f} steps a task, success {trial['success']:.0%}",
        markup=False,
    )
    second = await learner.train()
    console.print(f"  the gate's verdict: {second['outcome']}", style="bold", markup=False)
    if second["verdict"]:
        console.print(_table(second["verdict"]))
    if second["outcome"] == "promote":
        served = (await stream("promoted", seed + 2)).totals()
        console.print(
            f"  third stream, q-{second['version']} promoted: {served['steps_per_task']:.1f} steps a task,"
            f" success {served['success']:.0%}",
            markup=False,
        )
    else:
        console.print("  not promoted, for the reasons above: the untrained default goes on serving", markup=False)


def _table(verdict: dict[str, Any]) -> Table:
    table = Table("check", "measured", "limit", "")
    for check in verdict["checks"]:
        value = "-" if check["value"] is None else f"{check['value']:.3f}"
        table.add_row(check["name"], value, f"{check['limit']:.3f}", "passed" if check["passed"] else "not passed")
    return table
