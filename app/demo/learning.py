"""The demo's last part: train on what was logged, put the candidate on trial, and print the gate's verdict."""

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel, TypeAdapter
from rich.console import Console
from rich.table import Table

from app.demo.arms import Arm
from app.demo.operator.house import House
from app.processes.own_module import OWN_MODULE
from app.settings import Settings


class TrainingFailed(OSError):
    """Raised when the training process ends with an error."""


class RunStream(Protocol):
    """Runs a stream with memory, on the present bank and policy."""

    async def __call__(self, name: str, house: House) -> Arm:
        """Returns the records; ``name`` is the label of the progress bar."""


class Trainer(Protocol):
    """Trains on the log, and judges a policy on trial."""

    async def train(self) -> "TrainingReport":
        """Returns the result of the training."""


class Metrics(BaseModel):
    """Quality of a candidate's predictions on held-out rewards; empty without a candidate."""

    held_out: int = 0
    log_loss_gain: float = 0.0
    """Improvement over the default's log loss in nats."""
    log_loss_gain_error: float = 0.0
    """Standard error of the improvement."""


class Check(BaseModel):
    """One check of the gate; ``value`` is None if it could not be measured."""

    name: str
    value: float | None
    limit: float
    passed: bool


class Verdict(BaseModel):
    """The verdict of the gate, as far as the demo shows it."""

    checks: list[Check]


class TrainingReport(BaseModel):
    """The result of one training: the part of `casebank train`'s train.json that the demo shows."""

    user_sub: str = ""
    """User of the profile."""
    agent_key: str = ""
    outcome: str
    decisions: int = 0
    """Number of retrievals with a reward."""
    version: int | None = None
    metrics: Metrics = Metrics()
    verdict: Verdict | None = None


_REPORTS = TypeAdapter(list[TrainingReport])


@dataclass(frozen=True, slots=True)
class Learner:
    """Trains on the log of one user."""

    settings: Settings
    user: str
    agent: str
    out_dir: Path

    async def train(self) -> TrainingReport:
        """Trains and judges in a separate process, like the nightly job; returns the result of the profile.

        Raises:
            TrainingFailed: the process ended with an error.
        """
        folder = self.out_dir / "training"
        options = [f"--user={self.user}", f"--agent={self.agent}", f"--out-dir={folder}"]
        quiet = asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            *(*OWN_MODULE, "app.training", *options),
            stdout=quiet,
            stderr=quiet,
            env=self.settings.as_environment(),
        )
        if await process.wait():
            raise TrainingFailed("the training failed; `casebank train` shows why")
        reports = _REPORTS.validate_json((folder / "train.json").read_bytes())
        found = (each for each in reports if (each.user_sub, each.agent_key) == (self.user, self.agent))
        return next(found, TrainingReport(outcome="too few decisions"))


async def show_learning(trainer: Trainer, run_stream: RunStream, shown: House, console: Console) -> None:
    """Trains, runs a second stream with the candidate on trial, judges it, and prints which policy serves."""
    console.rule("Learning which memories help")
    first = await trainer.train()
    console.print(f"  trained on {first.decisions} rewarded retrievals: {first.outcome}")
    if first.outcome != "candidate":
        console.print("  the untrained default serves")
        return
    metrics = first.metrics
    console.print(
        f"  it predicts {metrics.held_out} later rewards better than the default by {metrics.log_loss_gain:+.3f} nats"
        f" (standard error {metrics.log_loss_gain_error:.3f}); q-{first.version} is now on trial",
    )
    trial = await run_stream("on trial", replace(shown, seed=shown.seed + 1))
    console.print(f"  second stream, seed {shown.seed + 1}: {totals_of(trial)}")
    second = await trainer.train()
    console.print(f"  the gate's verdict: {second.outcome}", style="bold")
    if second.verdict:
        table = Table("check", "measured", "limit", "")
        for check in second.verdict.checks:
            value = "-" if check.value is None else f"{check.value:.3f}"
            table.add_row(check.name, value, f"{check.limit:.3f}", "passed" if check.passed else "not passed")
        console.print(table)
    if second.outcome != "promote":
        console.print("  not promoted, because of the checks above: the untrained default serves")
        return
    served = await run_stream("promoted", replace(shown, seed=shown.seed + 2))
    console.print(f"  third stream, q-{second.version} promoted: {totals_of(served)}")


def totals_of(arm: Arm) -> str:
    """Returns the totals of the arm in a few words."""
    totals = arm.totals()
    return f"{totals.steps_per_task:.1f} steps a task, success {totals.success:.0%}"
