"""Benchmark 2, its data: real runs of customer-service agents and their tool calls.

Data: a folder with ``runs.jsonl`` and ``tasks.jsonl`` of tau-bench and tau2-bench runs (MIT).
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NotRequired, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from policy.logged import Floats, Ints
from retrieval.ports import Embedder
from writer.retain.backfill import BenchmarkStep, step_failed

_READ_ONLY = re.compile(r"(get_|find_|list_|search_|calculate|think|check_)")
_WORD = re.compile(r"[a-z0-9]+")
_STEM_CHARS = 5
"""Enough to match cancelled with cancel, and few enough to match exchange with exchanging."""


class _Run(TypedDict):
    """The used fields of a line of runs.jsonl."""

    user: str
    task_id: str
    task_text: str
    reward: float
    steps: list[BenchmarkStep]
    started_at: NotRequired[str | None]


class _Action(TypedDict):
    name: str


class _Task(TypedDict):
    """The used fields of a line of tasks.jsonl."""

    task_key: str
    gold_actions: list[_Action]


RowT = TypeVar("RowT")
_RUN, _TASK = TypeAdapter(_Run), TypeAdapter(_Task)


@dataclass(frozen=True, slots=True, eq=False)
class Domain:
    """n runs over t state-changing tools.

    Attributes:
        user, task: (n,), names.
        began: (n,), the runs' order in time; those without one are the oldest, in the order of the file.
        words: the tokens of each run's first message.
        vectors: (n, dimension), unit vectors of the first messages; zeros for a blank one.
        reward: (n,), 0 to 1.
        effects: (n, t), how often each state-changing tool succeeded in the run.
        gold: (n, t), how often each belongs into the right answer to the run's task.
        steps, errors: (n,), tool calls, and those of them that failed.
        tool_stems: stems of the words of each tool's name.
        tool_vectors: (t, dimension), unit vectors of the tools' names.
    """

    user: NDArray[np.str_]
    task: NDArray[np.str_]
    began: Ints
    words: list[list[str]]
    vectors: Floats
    reward: Floats
    effects: Floats
    gold: Floats
    steps: Floats
    errors: Floats
    tool_stems: list[frozenset[str]]
    tool_vectors: Floats


async def read(folder: Path, embedder: Embedder) -> Domain:
    """Returns the runs of a folder of this form.

    Raises:
        FileNotFoundError: the folder has no ``runs.jsonl`` or no ``tasks.jsonl``.
    """
    runs = _rows(folder / "runs.jsonl", _RUN)
    gold = {task["task_key"]: task["gold_actions"] for task in _rows(folder / "tasks.jsonl", _TASK)}
    done = [[step["tool"] for step in run["steps"] if not step_failed(step)] for run in runs]
    right = [[action["name"] for action in gold[run["task_id"]]] for run in runs]
    tools = sorted({tool for tools in (*done, *right) for tool in tools if changes_state(tool)})
    return Domain(
        user=np.array([run["user"] for run in runs]),
        task=np.array([run["task_id"] for run in runs]),
        began=np.argsort(np.argsort([run.get("started_at") or "" for run in runs], kind="stable")),
        words=[tokens(run["task_text"]) for run in runs],
        vectors=await _vectors([run["task_text"] for run in runs], embedder),
        reward=np.array([run["reward"] for run in runs], dtype=np.float64),
        effects=_counts(done, tools),
        gold=_counts(right, tools),
        steps=np.array([len(run["steps"]) for run in runs], dtype=np.float64),
        errors=np.array([sum(map(step_failed, run["steps"])) for run in runs], dtype=np.float64),
        tool_stems=[stems(tokens(tool)) for tool in tools],
        tool_vectors=await _vectors([tool.replace("_", " ") for tool in tools], embedder),
    )


def changes_state(tool: str) -> bool:
    """Returns whether a tool of this name does more than look something up."""
    return _READ_ONLY.match(tool) is None


def tokens(text: str) -> list[str]:
    """Returns the lower-case words and numbers of a text, in order."""
    return _WORD.findall(text.lower())


def stems(words: Iterable[str]) -> frozenset[str]:
    """Returns the beginnings of the words, by which forms of one word match."""
    return frozenset(word[:_STEM_CHARS] for word in words)


def _rows(file: Path, row: TypeAdapter[RowT]) -> list[RowT]:
    with file.open("rb") as lines:
        return [row.validate_json(line) for line in lines]


async def _vectors(texts: Sequence[str], embedder: Embedder) -> Floats:
    """Returns unit vectors, (len(texts), dimension); zeros for a blank text, which a few runs have."""
    worded = [row for row, text in enumerate(texts) if text.strip()]
    embedded = await embedder.embed([texts[row] for row in worded])
    vectors = np.zeros((len(texts), embedded.shape[1]))
    vectors[worded] = embedded
    return vectors


def _counts(used: Sequence[Sequence[str]], tools: Sequence[str]) -> Floats:
    column = {tool: index for index, tool in enumerate(tools)}
    counts = np.zeros((len(used), len(tools)))
    for row, names in enumerate(used):
        for tool, times in Counter(name for name in names if name in column).items():
            counts[row, column[tool]] = times
    return counts
