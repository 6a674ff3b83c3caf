"""Quality and speed of the failure analyst on real runs, and the effect of memory in the experiment.

The analyst is compared with labels: failure→success on the same tool, with the kind of fix. The runs are as retain
stores them, and once more with every status set to "ok", so that only the output's text shows an error. The experiment
runs its environments at their quick size (minutes).
"""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import orjson

from bench.experiment import experiments
from bench.measure import Measurement
from bench.real import real_run
from writer.analysis.calls import StoredRun
from writer.analysis.failures import FixKind
from writer.analysis.run_counts import failed_by_status
from writer.procedures.ports import Analysis, AnalysisKind
from writer.procedures.rules.learners import explain
from writer.procedures.rules.script import script

BESIDE_THE_REPOSITORY = Path(__file__).parents[1] / ".." / "shared" / "data"
PRECISION, RECALL, RUNS_PER_S = 0.90, 0.85, 200.0
SECONDS = 2.0
"""Least time over which the speed is taken."""

Event = tuple[str, str, tuple[int, ...], int, str]
"""Run id, tool, failing calls, the call that worked, and the kind of fix."""


@dataclass(frozen=True, slots=True)
class Domain:
    """The runs of one folder, as retain would store them, and their labels."""

    name: str
    runs: Mapping[str, StoredRun]
    labels: frozenset[Event]


async def lessons(home: Path, data: Path | None = None) -> list[Measurement]:
    """Returns the analyst's numbers on each domain of the data, and the experiments' changes by memory."""
    return [*analyst(data), *await experiments(home)]


def analyst(data: Path | None = None) -> list[Measurement]:
    """Returns the analyst's numbers on each domain of the data, or a row that says that it was skipped."""
    folder = data or BESIDE_THE_REPOSITORY
    files = sorted((folder / "tau").glob("*/failure_events.jsonl"))
    if not files:
        return [
            Measurement(
                "lessons: SKIPPED",
                float("nan"),
                "",
                "its data is not on this machine; --data or CASEBANK_DATA names it",
            )
        ]
    return [row for path in files for row in measure(read(path.parent))]


def read(folder: Path) -> Domain:
    """Returns the domain in the folder."""
    runs = {each["run_id"]: stored(each) for each in _lines(folder / "runs.jsonl")}
    labels = frozenset(
        (each["run_id"], each["tool"], tuple(each["fail_idx"]), each["success_idx"], each["kind"])
        for each in _lines(folder / "failure_events.jsonl")
    )
    return Domain(folder.name, runs, labels)


def stored(row: Mapping[str, Any]) -> StoredRun:
    """Returns a recorded run as the worker finds it."""
    run = real_run(row)
    return StoredRun(run.task, run.outcome, [trace.model_dump() for trace in run.tool_traces])


def all_ok(run: StoredRun) -> StoredRun:
    """Returns the run as if its tools had never set a status."""
    traces = [{**trace, "status": "ok"} for trace in run.tool_traces if isinstance(trace, Mapping)]
    return StoredRun(run.task, run.outcome, traces, run.turns, run.plan)


def _lines(path: Path) -> list[Any]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines() if line.strip()]


def measure(domain: Domain) -> list[Measurement]:
    """Returns precision, recall, false fixes, and the speed of analysis and abstraction in one domain."""
    rows = _quality(f"lessons {domain.name}", domain, domain.runs)
    rows += _quality(f"lessons {domain.name}, all ok", domain, {key: all_ok(run) for key, run in domain.runs.items()})
    return [*rows, _speed(domain)]


def _quality(name: str, domain: Domain, runs: Mapping[str, StoredRun]) -> list[Measurement]:
    analyses = {key: explain(run) for key, run in runs.items()}
    fixes = frozenset(event for key, analysis in analyses.items() for event in events(key, analysis))
    right = fixes & domain.labels
    return [
        Measurement(f"{name}: precision", _share(right, fixes), "", _kinds(right, fixes), PRECISION, at_least=True),
        Measurement(
            f"{name}: recall", _share(right, domain.labels), "", _kinds(right, domain.labels), RECALL, at_least=True
        ),
        _false_fixes(name, domain, analyses),
    ]


def events(run_id: str, analysis: Analysis) -> list[Event]:
    """Returns the fixed failures of the analysis in the form of the labels, by the tool that failed."""
    return [
        (run_id, each.tool, each.failed, each.succeeded, each.kind)
        for each in analysis.recovered
        if each.succeeded is not None and each.kind is not None and each.kind != "other_tool"
    ]


def _share(right: frozenset[Event], of: frozenset[Event]) -> float:
    return len(right) / len(of) if of else float("nan")


def _kinds(right: Iterable[Event], of: Iterable[Event]) -> str:
    good, every = (Counter(event[-1] for event in some) for some in (right, of))
    return ", ".join(f"{kind} {good[kind]}/{every[kind]}" for kind in get_args(FixKind) if every[kind])


def _false_fixes(name: str, domain: Domain, analyses: Mapping[str, Analysis]) -> Measurement:
    """Counts the fixes of failed calls for which no label names a recovery.

    The labels know of recoveries by the tool that failed alone, so those by another one are counted apart.
    """
    recovered = {(event[0], index) for event in domain.labels for index in event[2]}
    lost = {(key, index) for key, run in domain.runs.items() for index in failing(run)} - recovered
    every = [(key, fix) for key, each in analyses.items() for fix in each.recovered]
    fixes = [(key, fix) for key, fix in every if fix.kind != "other_tool"]
    false = sum(any((key, index) in lost for index in fix.failed) for key, fix in fixes)
    learned, avoided = (sum(each.kind == kind for each in analyses.values()) for kind in get_args(AnalysisKind))
    detail = (
        f"{len(lost)} failing calls; {learned} learned fixes, {avoided} failure lessons from {len(domain.runs)} runs; "
        f"{len(every) - len(fixes)} failures put right by another tool, of which no label tells"
    )
    return Measurement(f"{name}: fixes of failures never recovered from", false, "fixes", detail, 0)


def failing(run: StoredRun) -> list[int]:
    """Returns which calls failed as the labels know it: by the runs' own statuses alone."""
    traces = enumerate(run.tool_traces)
    return [index for index, trace in traces if isinstance(trace, Mapping) and failed_by_status(trace["status"])]


def _speed(domain: Domain) -> Measurement:
    runs: Sequence[StoredRun] = list(domain.runs.values())
    done, started = 0, time.process_time()
    while (spent := time.process_time() - started) < SECONDS:
        run = replace(runs[done % len(runs)])  # a copy, because a run keeps the analysis of its calls
        explain(run)
        script(run, "hybrid")
        done += 1
    calls = sum(len(run.tool_traces) for run in runs) / len(runs)
    detail = f"{done} runs in {spent:.1f} s of one core, {calls:.1f} calls a run"
    return Measurement(f"lessons {domain.name}: speed", done / spent, "runs/s", detail, RUNS_PER_S, at_least=True)
