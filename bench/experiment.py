"""The experiment's numbers against its aims."""

import os
from math import isfinite, nan
from pathlib import Path

import httpx

from app.demo.compare import Difference
from app.processes.own_service import own_service
from bench.bank import empty, settings_of
from bench.measure import Measurement
from examples.experiment.arm_summary import ArmSummary, summary
from examples.experiment.main import ENVIRONMENTS
from examples.experiment.report import Report
from examples.experiment.run import run_experiment
from examples.world import Adapter, EnvironmentMissing

STEPS, SUCCESS, WRONG_FAMILY = -0.50, 0.10, -0.02
"""Aims: change of steps, share of tasks won, and share won (so: lost) with memory of a wrong family."""


async def experiments(home: Path) -> list[Measurement]:
    """Returns the changes by memory in each environment, or a row that says that it was skipped."""
    url = await empty(home, "experiment")
    rows: list[Measurement] = []
    async with own_service(settings_of(home, url, os.urandom(32))) as running:
        for name, make in ENVIRONMENTS.items():
            headers = running.headers(f"experiment-{name}")
            async with httpx.AsyncClient(base_url=running.base_url, headers=headers, timeout=30) as client:
                rows += await measure(make(url), client)
    return rows


async def measure(adapter: Adapter, client: httpx.AsyncClient) -> list[Measurement]:
    """Returns the rows of one environment."""
    try:
        report = await run_experiment(adapter, client, adapter.size)
    except EnvironmentMissing as missing:
        return [Measurement(f"experiment {adapter.name}: SKIPPED", float("nan"), "", str(missing))]
    if not report.tested:
        crash = report.crashes[0].error
        return [Measurement(f"experiment {adapter.name}: NOTHING TO COMPARE", float("nan"), "", crash, aim=0)]
    return rows_of(report)


def rows_of(report: Report) -> list[Measurement]:
    """Returns the numbers of a report with tested episodes."""
    name = f"experiment {report.adapter.name}"
    before, after = (summary(episodes) for episodes in zip(*report.tested, strict=True))
    wrong = summary([episode for _, episode in report.wrong_family])
    arms = report.summaries()
    nets = {k: arms[f"test, K = {k}"].tokens_net for k in report.sweep if k}
    rows = [
        _row(f"{name}: change of steps", report.steps, _steps(before, after), STEPS, at_least=False),
        _row(f"{name}: success won", _share(report.success), _success(before, after), SUCCESS),
        _row(f"{name}: success won, wrong family", _share(report.wrong_success), _success(before, wrong), WRONG_FAMILY),
        Measurement(
            f"{name}: break-even",
            report.measured["break_even"],
            "tasks",
            "tokens saved less added, a task: " + ", ".join(f"{_of(net):+.0f} at K = {k}" for k, net in nets.items()),
            report.size.practice,
        ),
    ]
    if report.reflected:
        kept, revised = (summary(episodes) for episodes in zip(*report.reflected, strict=True))
        steps = f"after a change of the rules, revisions on against off; {_steps(kept, revised)}"
        rows += [
            _row(f"{name}: success won by revisions", _share(report.reflection_success), _success(kept, revised), 0.10),
            _row(f"{name}: change of steps by revisions", report.reflection_steps, steps, -0.10, at_least=False),
        ]
    if report.experts:
        expert = summary(report.experts)
        detail = _success(before, expert) + "; an expert's solutions in the bank, for comparison"
        rows.append(
            Measurement(f"{name}: success won, expert's bank", _of(expert.success) - _of(before.success), "", detail)
        )
    return rows


def _row(name: str, difference: Difference, detail: str, aim: float, *, at_least: bool = True) -> Measurement:
    interval = (difference.low, difference.high) if isfinite(difference.low) else None
    return Measurement(name, difference.value, "", detail, aim, at_least=at_least, interval=interval)


def _share(points: Difference) -> Difference:
    return Difference(points.value / 100, points.low / 100, points.high / 100)


def _steps(before: ArmSummary, after: ArmSummary) -> str:
    without, with_memory = _of(before.steps), _of(after.steps)
    return f"{without:.1f} steps a task without, {with_memory:.1f} with; a failure counts the budget"


def _success(before: ArmSummary, after: ArmSummary) -> str:
    return f"{_of(before.success):.0%} without, {_of(after.success):.0%} with, {after.tasks} tasks"


def _of(mean: float | None) -> float:
    """Returns the mean, or NaN without values."""
    return nan if mean is None else mean
