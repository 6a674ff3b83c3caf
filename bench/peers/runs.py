"""Recorded runs for all memories: the bank's runs, the queries' runs, and which answers help a query."""

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import orjson

from bench.advice import DOMAINS
from bench.peers.memory import USERS, PastRun
from bench.real import real_run
from bench.replay.recorded import step_failed
from bench.replay.tau_folds import changes


def read(data: Path, count: int, queries: int) -> tuple[list[PastRun], list[PastRun]]:
    """Returns so many runs for the bank and so many other ones that ask, fewer of the former if the data has less."""
    rows, gold = [], dict[str, Counter[str]]()
    for folder in (data / "tau" / domain for domain in DOMAINS):
        if (folder / "runs.jsonl").is_file():
            lines = map(orjson.loads, (folder / "runs.jsonl").read_bytes().splitlines())
            rows += [line for line in lines if line["task_text"].strip()]
            tasks = map(orjson.loads, (folder / "tasks.jsonl").read_bytes().splitlines())
            gold |= {task["task_key"]: changes([action["name"] for action in task["gold_actions"]]) for task in tasks}
    customers = {name: place for place, name in enumerate(sorted({row["user"] for row in rows}))}
    random.Random(0).shuffle(rows)
    runs = []
    for number, row in enumerate(rows[: count + queries]):
        retained = real_run(row)
        effects = changes([step["tool"] for step in row["steps"] if not step_failed(step)])
        user = USERS[customers[row["user"]] % len(USERS)]
        document = retained.model_dump_json(exclude_defaults=True)
        runs.append(PastRun(number, user, row["task_id"], effects, gold[row["task_id"]], retained, document))
    return runs[queries:], runs[:queries]


def same_task(query: PastRun, found: Sequence[PastRun]) -> bool:
    """Returns whether a found run solved the task of the query."""
    return any(run.succeeded and run.task == query.task for run in found)


def same_tools(query: PastRun, found: Sequence[PastRun]) -> bool:
    """Returns whether a found run that went well changed what the query needs, by the same tools equally often."""
    return any(run.succeeded and run.effects == query.gold for run in found)
