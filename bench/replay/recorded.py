"""Streams of recorded texts and runs, read from the folder of data: banking77, and the runs of tau-bench."""

import csv
import random
from operator import itemgetter
from pathlib import Path
from typing import Any, TypedDict

import orjson

from bench.replay.runs import Call, Run, Stream
from writer.analysis.calls import failed

TEXTS = 500
"""Number of bank customers' texts."""
TAU = ("retail", "airline", "telecom")
A_DAY = 20
"""Number of runs a day."""


class TauStep(TypedDict):
    """The used fields of a tool call of a run."""

    tool: str
    input: Any
    output: Any
    error: bool


class TauRun(TypedDict):
    """The used fields of a line of ``runs.jsonl``."""

    run_id: str
    user: str
    task_id: str
    task_text: str
    reward: float
    steps: list[TauStep]
    started_at: str


def banking77(seed: int, data: Path) -> Stream:
    """Returns texts of bank customers drawn by seed; the plan is one call of the tool named like the intent."""
    file = data / "banking77" / "train.csv"
    if not file.is_file():
        return Stream("banking77", (), f"its data is not on this machine: {file}")
    with file.open(encoding="utf-8", newline="") as lines:
        rows = [(row["text"], row["category"], str(place)) for place, row in enumerate(csv.DictReader(lines))]
    drawn = random.Random(f"{seed}:banking77").sample(rows, TEXTS)
    return Stream(
        "banking77",
        tuple(
            Run(
                text,
                (Call(intent, {}, "done", ok=True),),
                succeeded=True,
                day=place // A_DAY,
                kind=intent,
                recorded=row,
            )
            for place, (text, intent, row) in enumerate(drawn)
        ),
    )


def tau(domain: str, seed: int, data: Path) -> Stream:
    """Returns the recorded runs of a domain: in the order of time if each run has its date, else drawn by seed.

    Runs without a first message are left out: a service refuses a run without a task.
    All of telecom's runs have their date. Of retail's and airline's half have none or one that stands for a year, and
    these runs are as old as some of the others, so that no order of time is known.
    """
    name, file = f"tau_{domain}", data / "tau" / domain / "runs.jsonl"
    if not file.is_file():
        return Stream(name, (), f"its data is not on this machine: {file}")
    lines: list[TauRun] = [orjson.loads(line) for line in file.read_bytes().splitlines() if line.strip()]
    rows = [row for row in lines if row["task_text"].strip()]
    dated = all(row["started_at"] for row in rows)
    if dated:
        rows.sort(key=itemgetter("started_at"))
    else:
        random.Random(f"{seed}:{name}").shuffle(rows)
    return Stream(name, tuple(run_of(row, place // A_DAY) for place, row in enumerate(rows)), fixed=dated)


def run_of(row: TauRun, day: int = 0) -> Run:
    """Returns a recorded run of tau-bench; its kind is the id of its task."""
    calls = tuple(Call(step["tool"], step["input"], step["output"], ok=not step_failed(step)) for step in row["steps"])
    return Run(row["task_text"], calls, row["reward"] == 1, day, row["task_id"], row["run_id"])


def step_failed(step: TauStep) -> bool:
    """Returns whether a call failed, by the definition of ``writer.analysis.calls``."""
    return failed("error" if step["error"] else "ok", step["output"], step["tool"])
