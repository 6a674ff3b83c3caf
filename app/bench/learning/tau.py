"""Benchmark 2, its world: real runs of customer-service agents, their tool calls, and what reusing each would be worth.

A query is a run's first user message; a candidate is another run, known by its text, tool calls and reward. What it is
worth to the query is its reward times the F1 of its successful state-changing tools with the query's gold ones. Gold
and the query's own run serve only to compute that utility. Folds are by user: no test user's run is in a training
bank, no test user's query is trained on.

Cold: the bank has up to 4 runs a task, none of the query's user. Warm: up to 5 runs a task, the query's own user and
task included, the run itself left out.

Data: a folder with ``runs.jsonl`` and ``tasks.jsonl`` of tau-bench and tau2-bench runs (MIT).
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policy import default, evidence, features
from policy.logged import Floats, Ints
from retrieval.ports import Embedder
from retrieval.search import candidates
from writer.retain.backfill import step_failed

Bools = NDArray[np.bool_]
Random = np.random.Generator

PLACES = 4
FOLDS = 5
RRF_K = 50.0
POOL = candidates.POOL
"""How many candidates a decision weighs: the best of the bank by the untrained default."""
CONSENSUS_PEERS = 40
BM25_K1, BM25_B = 1.5, 0.75
FIXED = (
    "random",
    "recency",
    "vector",
    "keyword",
    "rrf",
    "rrf + success filter",
    "plan consensus + success filter",
)
"""The rules that need no pool and no log."""
DISCOUNT = 1 / np.log2(np.arange(2, PLACES + 2))  # (PLACES,)

_READ_ONLY = re.compile(r"(get_|find_|list_|search_|calculate|think|check_)")
_WORD = re.compile(r"[a-z0-9]+")
_STEM_CHARS = 5
"""Enough to match cancelled with cancel, and few enough to match exchange with exchanging."""


class Mode(Enum):
    """Whether the bank knows the query's user; the value is how many runs a task the bank keeps."""

    COLD = 4
    WARM = 5


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
        tool_stems: of each tool, the stems of its name's words.
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


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """One query with the candidates a policy may choose from, at most POOL, the default's first choice first.

    Attributes:
        run: whose first message is the query.
        user: whose it is; intervals cluster by it.
        candidates: (k,), runs of the bank.
        known: (k, len(features.NAMES)), the candidates' own features.
        evidence: (k, len(evidence.NAMES)), what the similar successes among them say of each.
        utility: (k,), what each is worth, 0 to 1: never shown to a policy that learns from outcomes.
        ideal: the best DCG@4 that the whole bank allows; 0: no case of it is of use.
        fixed: nDCG@4 of each fixed rule over the whole bank; empty where ideal is 0.
    """

    run: int
    user: str
    candidates: Ints
    known: features.Features
    evidence: NDArray[np.float32]
    utility: Floats
    ideal: float
    fixed: Mapping[str, float]

    @property
    def failed(self) -> Bools:
        """Which candidates failed, (k,)."""
        return features.column(self.known, "failed") > 0


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """The questions of four fifths of the users to train on, and of the rest to test on, by mode."""

    seed: int
    number: int
    train: Mapping[Mode, list[Question]]
    test: Mapping[Mode, list[Question]]


async def read(folder: Path, embedder: Embedder) -> Domain:
    """Returns the runs of a folder of this form.

    Raises:
        FileNotFoundError: the folder has no ``runs.jsonl`` or no ``tasks.jsonl``.
    """
    runs = list(_lines(folder / "runs.jsonl"))
    gold = {task["task_key"]: task["gold_actions"] for task in _lines(folder / "tasks.jsonl")}
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
        tool_stems=[_stems(tokens(tool)) for tool in tools],
        tool_vectors=await _vectors([tool.replace("_", " ") for tool in tools], embedder),
    )


def changes_state(tool: str) -> bool:
    """Returns whether a tool of this name does more than look something up."""
    return _READ_ONLY.match(tool) is None


def tokens(text: str) -> list[str]:
    """Returns the lower-case words and numbers of a text, in order."""
    return _WORD.findall(text.lower())


def folds(domain: Domain, seeds: Iterable[int]) -> Iterator[Fold]:
    """Yields five folds by user for each seed; the seed deals the users and draws the runs that the banks keep."""
    for seed in seeds:
        random = np.random.default_rng(seed)
        dealt = {user: place % FOLDS for place, user in enumerate(random.permutation(np.unique(domain.user)))}
        fold_of = np.array([dealt[user] for user in domain.user])
        drawn = random.permutation(len(domain.user))
        kept = {mode: _kept(domain, drawn, mode.value) for mode in Mode}
        for number in range(FOLDS):
            train = {mode: runs[fold_of[runs] != number] for mode, runs in kept.items()}
            test = {mode: runs[fold_of[runs] == number] for mode, runs in kept.items()}
            bank = {Mode.COLD: train[Mode.COLD], Mode.WARM: kept[Mode.WARM]}
            yield Fold(
                seed,
                number,
                {mode: _questions(domain, mode, train[mode], train[mode], random) for mode in Mode},
                {mode: _questions(domain, mode, test[mode], bank[mode], random) for mode in Mode},
            )


def slate(scores: NDArray[np.floating[Any]], failed: Bools) -> Ints:
    """Returns the PLACES best candidates, in order, at most one of them failed; ties keep the default's order."""
    order = np.argsort(-scores, kind="stable")
    first_failure = np.cumsum(failed[order]) <= 1
    return order[~failed[order] | first_failure][:PLACES].astype(np.int64)


def ndcg(utility: Floats, chosen: Ints, ideal: float) -> float:
    """Returns nDCG@4 of the chosen against the best that the bank allows."""
    return float(utility[chosen] @ DISCOUNT[: len(chosen)] / ideal)


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


async def _vectors(texts: Sequence[str], embedder: Embedder) -> Floats:
    """Unit vectors, (len(texts), dimension); a blank text, of which a few runs have one, is near to nothing: zeros."""
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


def _stems(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word[:_STEM_CHARS] for word in words)


def _kept(domain: Domain, drawn: Ints, runs_a_task: int) -> Ints:
    """The first so many runs of each task, as drawn; ascending."""
    seen: Counter[str] = Counter()
    kept = []
    for run in drawn:
        seen[domain.task[run]] += 1
        if seen[domain.task[run]] <= runs_a_task:
            kept.append(run)
    return np.sort(np.array(kept, dtype=np.int64))


def _questions(domain: Domain, mode: Mode, queries: Ints, bank: Ints, random: Random) -> list[Question]:
    relevance = _bm25([domain.words[run] for run in queries], [domain.words[run] for run in bank])
    asked = []
    for query, row in zip(queries, relevance, strict=True):
        mine = domain.user[bank] == domain.user[query] if mode is Mode.COLD else bank == query
        asked.append(_question(domain, int(query), bank[~mine], row[~mine], random))
    return asked


def _bm25(queries: Sequence[Sequence[str]], documents: Sequence[Sequence[str]]) -> Floats:
    """Returns the relevance of each document to each query, (queries, documents) (Robertson and Zaragoza 2009)."""
    lengths = np.array([len(document) for document in documents])
    norm = BM25_K1 * (1 - BM25_B + BM25_B * lengths / lengths.mean())
    postings: dict[str, list[tuple[int, int]]] = {}
    for number, document in enumerate(documents):
        for word, times in Counter(document).items():
            postings.setdefault(word, []).append((number, times))
    weights = {}
    for word, found in postings.items():
        rows, times_found = np.array(found).T
        rarity = np.log1p((len(documents) - len(found) + 0.5) / (len(found) + 0.5))
        weights[word] = rows, rarity * times_found * (BM25_K1 + 1) / (times_found + norm[rows])
    relevance = np.zeros((len(queries), len(documents)))
    for number, query in enumerate(queries):
        for word in set(query) & weights.keys():
            rows, weight = weights[word]
            relevance[number, rows] += weight
    return relevance


@dataclass(frozen=True, slots=True, eq=False)
class _Bank:
    """A bank as one query meets it; arrays over its m runs."""

    runs: Ints
    similarity: Floats
    semantic_rank: Floats
    keyword_rank: Floats
    """1-based, also for runs that share no word with the query: they come last."""
    matched: Bools
    rrf: Floats
    utility: Floats
    ideal: float


def _question(domain: Domain, query: int, runs: Ints, relevance: Floats, random: Random) -> Question:
    similarity = domain.vectors[runs] @ domain.vectors[query]
    utility = evidence.agreement(domain.gold[[query]], domain.effects[runs])[0] * domain.reward[runs]
    semantic_rank, keyword_rank = _ranks(similarity, random), _ranks(relevance, random)
    best = np.sort(utility)[::-1][:PLACES]
    bank = _Bank(
        runs=runs,
        similarity=similarity,
        semantic_rank=semantic_rank,
        keyword_rank=keyword_rank,
        matched=relevance > 0,
        rrf=1 / (RRF_K + semantic_rank) + 1 / (RRF_K + keyword_rank),
        utility=utility,
        ideal=float(best @ DISCOUNT[: len(best)]),
    )
    known = _known(domain, bank)
    pool = np.argsort(-default.scores(known), kind="stable")[:POOL]
    cases = _cases(domain, bank, pool)
    return Question(
        run=query,
        user=str(domain.user[query]),
        candidates=runs[pool],
        known=known[pool],
        evidence=evidence.features(cases, cases, _tools(domain, query)),
        utility=utility[pool],
        ideal=bank.ideal,
        fixed=_fixed(domain, bank, random) if bank.ideal > 0 else {},
    )


def _ranks(values: Floats, random: Random) -> Floats:
    """1-based, the highest value first; ties at random."""
    shuffled = random.permutation(len(values))
    ranks = np.empty(len(values))
    ranks[shuffled[np.argsort(-values[shuffled], kind="stable")]] = np.arange(1, len(values) + 1)
    return ranks


def _known(domain: Domain, bank: _Bank) -> features.Features:
    reward = domain.reward[bank.runs]
    table = {
        "semantic_rank": bank.semantic_rank,
        "keyword_rank": np.where(bank.matched, bank.keyword_rank, np.nan),
        "similarity": bank.similarity,
        "rrf": bank.rrf,
        "reward": reward,
        "occurrences": np.ones(len(reward)),
        "step_count": domain.steps[bank.runs],
        "error_count": domain.errors[bank.runs],
        "failed": reward == 0,
        "proven": np.ones(len(reward)),
    }
    nothing = np.zeros(len(reward))
    return np.stack([table.get(name, nothing) for name in features.NAMES], axis=1).astype(np.float32)


def _cases(domain: Domain, bank: _Bank, rows: Ints) -> evidence.Cases:
    runs = bank.runs[rows]
    return evidence.Cases(
        similarity=bank.similarity[rows],
        keyword_rank=np.where(bank.matched, bank.keyword_rank, np.nan)[rows],
        reward=domain.reward[runs],
        effects=domain.effects[runs],
        steps=domain.steps[runs],
        errors=domain.errors[runs],
    )


def _tools(domain: Domain, query: int) -> evidence.Tools:
    asked = _stems(domain.words[query])
    overlap = np.array([len(stems & asked) / len(stems) for stems in domain.tool_stems])
    return evidence.Tools(domain.tool_vectors, domain.vectors[query], overlap)


def _fixed(domain: Domain, bank: _Bank, random: Random) -> dict[str, float]:
    """nDCG@4 of the rules that anyone could write down, over the whole bank; no rule about failures but their own."""
    success = domain.reward[bank.runs] > 0
    scores = (
        random.random(len(bank.runs)),
        domain.began[bank.runs],
        -bank.semantic_rank,
        -bank.keyword_rank,
        bank.rrf,
        bank.rrf * success,
        (_consensus(domain, bank) + bank.rrf / 1_000) * success,
    )
    return {
        name: ndcg(bank.utility, np.argsort(-score, kind="stable")[:PLACES], bank.ideal)
        for name, score in zip(FIXED, scores, strict=True)
    }


def _consensus(domain: Domain, bank: _Bank) -> Floats:
    """The similarity-weighted agreement of each run with the plans of the 40 most similar successes, (m,)."""
    won = np.flatnonzero(domain.reward[bank.runs] > 0)
    near = won[np.argsort(bank.semantic_rank[won])][:CONSENSUS_PEERS]
    weight = np.maximum(bank.similarity[near], 0)
    plans = evidence.agreement(domain.effects[bank.runs], domain.effects[bank.runs[near]])
    consensus: Floats = plans @ weight / max(weight.sum(), evidence.TINY)
    return consensus
