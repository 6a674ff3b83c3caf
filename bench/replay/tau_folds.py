"""tau-bench's runs in folds, cold and warm, as banks to ask: the pool of a query, and how much each case of it helps.

A seed draws the order of time and the runs that the banks keep. Cold: the bank has up to 4 runs a task, and five folds
by user keep the query's user out of it. Warm: it has up to 5 runs a task of all users, without the run itself. Each
fold's bank is replayed without the runs of its queries; the service's features rank a pool like the search's.

A case helps by its agreement with the plan that the task needs: its reward times the F1 of its state-changing tools
with the gold ones. Or it helps if it solved the very task. The F1 shares no code with ``policy.agreement``, or an order
by that agreement would win by definition.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from bench.replay.numbers import A_DAY_S, Numbers, history, numbers
from bench.replay.recorded import TauRun, run_of
from bench.replay.runs import Run
from policy.agreement import Matrix
from policy.channels import cosine, incidence
from policy.features import USUAL_REWARD, Candidates
from policy.fit import Fit
from policy.orders import RRF_K
from policy.replay import replay
from retrieval.search.candidates import POOL
from retrieval.search.fusion import PROVEN_PART

Ints = NDArray[np.intp]

DOMAINS = ("retail", "airline", "telecom")
FOLDS = 5
COLD, WARM = "cold", "warm"
RUNS_A_TASK = {COLD: 4, WARM: 5}
PLAN, SAME_TASK = "agreement of plans", "same task, solved"
DISCOUNT = 1 / np.log2(np.arange(4) + 2)
PART = round(POOL * PROVEN_PART)
"""Places in the pool for runs that went well."""
_READ_ONLY = re.compile(r"get_|find_|list_|search_|calculate|think|check_|can_|run_")
"""Tools that change nothing; the last two are tests that telecom's customers run on their phones."""


@dataclass(frozen=True, slots=True, eq=False)
class Domain:
    """n recorded runs of one domain.

    Attributes:
        user: (n,), the customer of each.
        effects: the state-changing tools of each that succeeded.
        gold: those of the right answer to each one's task.
    """

    runs: Sequence[Run]
    numbers: Sequence[Numbers]
    user: NDArray[np.str_]
    effects: Sequence[Counter[str]]
    gold: Sequence[Counter[str]]


def domains(data: Path) -> dict[str, Domain]:
    """Returns the domains whose data is there, by name."""
    return {name: read(name, data) for name in DOMAINS if (data / "tau" / name / "runs.jsonl").is_file()}


def read(name: str, data: Path) -> Domain:
    """Returns the runs of a domain."""
    folder = data / "tau" / name
    rows: list[TauRun] = _lines(folder / "runs.jsonl")
    tasks = _lines(folder / "tasks.jsonl")
    gold = {task["task_key"]: changes([action["name"] for action in task["gold_actions"]]) for task in tasks}
    runs = [run_of(row) for row in rows]
    return Domain(
        runs,
        asyncio.run(numbers(runs)),
        np.array([row["user"] for row in rows]),
        [changes([call.tool for call in run.calls if call.ok]) for run in runs],
        [gold[run.kind] for run in runs],
    )


def _lines(file: Path) -> list[Any]:
    return [orjson.loads(line) for line in file.read_bytes().splitlines() if line.strip()]


def changes(tools: Sequence[str]) -> Counter[str]:
    """Returns the state-changing ones of the tools."""
    return Counter(tool for tool in tools if not _READ_ONLY.match(tool))


def f1(plan: Counter[str], other: Counter[str]) -> float:
    """Returns the F1 of two multisets of tools; to change nothing is a plan, and two that change nothing agree."""
    total = plan.total() + other.total()
    return 2 * (plan & other).total() / total if total else 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """A fifth of the queries.

    Attributes:
        queries: runs whose first message is asked.
        bank: runs that may be told, the oldest first.
        place: (n,), place of each run in the order of time.
        fit: numbers of the bank without the queries' own runs.
    """

    mode: str
    queries: Ints
    bank: Ints
    place: Ints
    fit: Fit


def folds(domain: Domain, seed: int) -> Iterator[Fold]:
    """Yields the folds of each mode; the seed deals users and runs, and draws the order of time."""
    random = np.random.default_rng(seed)
    fifth = {user: number % FOLDS for number, user in enumerate(random.permutation(np.unique(domain.user)))}
    drawn = random.permutation(len(domain.user))
    place = np.argsort(drawn)
    for mode, most in RUNS_A_TASK.items():
        kept = _first_of_each_task(domain, drawn, most)
        fold_of = np.array([fifth[user] for user in domain.user[kept]]) if mode == COLD else place[kept] % FOLDS
        for number in range(FOLDS):
            others = kept[fold_of != number]
            past = [replace(domain.runs[run], day=int(place[run])) for run in others]
            fit = replay(history(past, [domain.numbers[run] for run in others])).fit
            yield Fold(mode, kept[fold_of == number], others if mode == COLD else kept, place, fit)


def _first_of_each_task(domain: Domain, drawn: Ints, most: int) -> Ints:
    seen: Counter[str] = Counter()
    kept = []
    for run in drawn:
        seen[domain.runs[run].kind] += 1
        if seen[domain.runs[run].kind] <= most:
            kept.append(run)
    return np.array(kept)


def pool_of(domain: Domain, fold: Fold, query: int) -> Ints:
    """Returns the candidates that the search keeps: the best of either fate up to its part, then the best of all."""
    bank = fold.bank[fold.bank != query]
    has, distinct = incidence([domain.numbers[run].terms for run in (query, *bank)])
    rare = cosine(has[:1], has[1:], fold.fit.rare(distinct))[0]
    meaning = np.array([domain.numbers[run].vector for run in bank]) @ domain.numbers[query].vector
    ranks = [np.argsort(np.argsort(-near, kind="stable"), kind="stable") for near in (rare, meaning)]
    best = np.argsort(-sum(1 / (RRF_K + 1 + rank) for rank in ranks), kind="stable")
    proven = np.array([domain.runs[run].succeeded for run in bank[best]])
    beyond = np.where(proven, np.cumsum(proven) > PART, np.cumsum(~proven) > POOL - PART)
    return np.asarray(bank[best[np.argsort(beyond, kind="stable")[:POOL]]])


def candidates_of(domain: Domain, fold: Fold, pool: Ints, query: int) -> Candidates:
    """Returns the pool's numbers for a query; no case has been followed yet."""
    runs, numbered = [domain.runs[run] for run in pool], [domain.numbers[run] for run in pool]
    failed = np.array([not run.succeeded for run in runs], dtype=np.bool_)
    return Candidates(
        times=np.array((fold.place[pool] + 0.5) * A_DAY_S, dtype=np.float64),
        terms=[each.terms for each in numbered],
        moves=[each.moves for each in numbered],
        similarity=np.array([each.vector @ domain.numbers[query].vector for each in numbered], dtype=np.float32),
        reward=(~failed).astype(np.float32),
        record=np.full(len(pool), USUAL_REWARD, dtype=np.float32),
        steps=np.array([len(run.calls) for run in runs], dtype=np.float32),
        proven=~failed,
        failed=failed,
    )


def told(pool: Ints, scores: Matrix, failed: NDArray[np.bool_]) -> Ints:
    """Returns the first four runs of the pool by their scores, failed ones last."""
    return pool[np.lexsort((-scores, failed))[:4]]


def _agrees(domain: Domain, query: int, run: int) -> float:
    return f1(domain.gold[query], domain.effects[run]) if domain.runs[run].succeeded else 0.0


def _solved(domain: Domain, query: int, run: int) -> float:
    return float(domain.runs[run].succeeded and domain.runs[run].kind == domain.runs[query].kind)


HELPS: Mapping[str, Callable[[Domain, int, int], float]] = {PLAN: _agrees, SAME_TASK: _solved}
"""The share, 0 to 1, in which a run helps a query, by each reading."""


def ideal_dcg(domain: Domain, fold: Fold, query: int, reading: str) -> float:
    """Returns the DCG@4 of the best slate that the bank has for a query; 0: no run of it helps."""
    bank = fold.bank[fold.bank != query]
    return _discounted(sorted((HELPS[reading](domain, query, run) for run in bank), reverse=True)[:4])


def dcg(domain: Domain, query: int, slate: Ints, reading: str) -> float:
    """Returns the DCG@4 of a slate (Järvelin & Kekäläinen 2002)."""
    return _discounted([HELPS[reading](domain, query, run) for run in slate])


def _discounted(gains: Sequence[float]) -> float:
    return float(np.array(gains) @ DISCOUNT[: len(gains)])
