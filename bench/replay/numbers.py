"""Runs as the numbers that the worker stores of them: terms, moves and vectors, without a database."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.providers.wordllama import WordLlamaEmbedder
from bench.replay.runs import Run
from policy.agreement import Matrix, Moves
from policy.channels import Terms, words
from policy.history import History
from writer.analysis.calls import StoredRun
from writer.analysis.moves import moves_of

EMBEDDER = WordLlamaEmbedder()
A_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """The numbers of one run; its vector has length 1."""

    terms: Terms
    moves: Moves
    vector: Matrix


async def numbers(runs: Sequence[Run]) -> list[Numbers]:
    """Returns the numbers of each run."""
    vectors = list[Matrix](await EMBEDDER.embed([run.task or "-" for run in runs]) if runs else ())
    return [
        Numbers(hashed("term", words(run.task)), hashed("move", moves_of(stored(run))), vector)
        for run, vector in zip(runs, vectors, strict=True)
    ]


def stored(run: Run) -> StoredRun:
    """Returns the run as the bank stores it."""
    traces = [
        {"tool": call.tool, "input": call.input, "output": call.output, "status": "ok" if call.ok else "error"}
        for call in run.calls
    ]
    return StoredRun(run.task, "success" if run.succeeded else "failure", traces)


def hashed(purpose: str, texts: Sequence[str]) -> NDArray[np.int32]:
    """Returns a number of 32 bits for each text, the same in every process."""
    digests = b"".join(hashlib.blake2b(f"{purpose} {text}".encode(), digest_size=4).digest() for text in texts)
    return np.frombuffer(digests, dtype="<i4")


def history(runs: Sequence[Run], numbered: Sequence[Numbers]) -> History:
    """Returns the runs as a history; all weigh the same."""
    count = len(runs)
    times = np.array([run.day * A_DAY_S + place for place, run in enumerate(runs)], dtype=np.float64)
    return History(
        times=times,
        terms=[each.terms for each in numbered],
        vectors=np.array([each.vector for each in numbered], dtype=np.float32).reshape(count, -1),
        moves=[each.moves for each in numbered],
        went_well=np.array([run.succeeded for run in runs], dtype=np.bool_),
        failed=np.array([not run.succeeded for run in runs], dtype=np.bool_),
        trust=np.ones(count, dtype=np.float32),
        weight=np.ones(count, dtype=np.float32),
        newest=times,
    )
