"""What the network's inputs earn: ``python -m bench.replay.inputs SEED,... INPUT,...`` (no input: each left out, alone).

Each stream is asked in the order of time. The first eight plans of each pool are examples for a head, with the agreement
with the plan that worked as reward: a label for every case, which no log of decisions has. A head learns from the first
three fifths of a stream's questions, and orders the pools of the others. Printed for each set of inputs: the change of
nDCG@4 and of first places against the order that serves, on each stream and on average.
"""

import asyncio
import sys
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bench.lessons import BESIDE_THE_REPOSITORY
from bench.replay.numbers import A_DAY_S, history, numbers
from bench.replay.runs import Stream
from bench.replay.stream import STREAMS
from bench.replay.tau_folds import DISCOUNT
from policy.agreement import SAME, agreement
from policy.channels import cosine, incidence
from policy.examples import Examples, shared_credit
from policy.features import Candidates, features, record
from policy.inputs import CASE, QUERY, Inputs
from policy.network import untrained
from policy.orders import RRF_K
from policy.replay import replay
from policy.train import RIDGES, STAY, train
from retrieval.search.candidates import POOL
from writer.replays.profile_replay import FRESH, NEWEST

LABELLED, LEARNED = 8, 0.6
OWN = len(QUERY) - len(CASE)
Row = tuple[NDArray[np.float32], ...]
"""Inputs of the cases of a pool, one for each plan, best first; their prior; the query's inputs; each one's label."""


def rows(stream: Stream) -> Iterator[Row]:
    """Yields a row for each run that went well, with the records that the slates before it earned."""
    runs, numbered = stream.runs, asyncio.run(numbers(stream.runs))
    failed = np.array([not run.succeeded for run in runs])
    times = np.array([run.day * A_DAY_S + place for place, run in enumerate(runs)])
    count, reward = (np.zeros(len(runs)) for _ in range(2))
    fit, fresh = None, 0
    for asked in range(1, len(runs)):
        bank = np.arange(max(0, asked - NEWEST), asked)
        if (fresh := fresh + 1) >= FRESH * len(bank):
            fit, fresh = replay(history([runs[run] for run in bank], [numbered[run] for run in bank])).fit, 0
        if failed[asked] or fit is None:
            continue
        vectors = np.array([numbered[run].vector for run in bank]) @ numbered[asked].vector
        has, distinct = incidence([numbered[run].terms for run in (asked, *bank)])
        rare = cosine(has[:1], has[1:], fit.rare(distinct))[0]
        places = [np.argsort(np.argsort(-near, kind="stable"), kind="stable") for near in (rare, vectors)]
        near = np.argsort(-sum(1 / (RRF_K + 1 + place) for place in places), kind="stable")[:POOL]
        pool = bank[near]
        calls = [runs[run].calls for run in pool]
        candidates = Candidates(
            times=times[pool],
            terms=[numbered[run].terms for run in pool],
            moves=[numbered[run].moves for run in pool],
            similarity=vectors[near].astype(np.float32),
            reward=(~failed[pool]).astype(np.float32),
            record=record(count[pool], reward[pool]),
            steps=np.array([len(each) for each in calls], np.float32),
            errors=np.array([sum(not call.ok for call in each) for each in calls], np.float32),
            proven=~failed[pool],
            failed=failed[pool],
        )
        found = features(numbered[asked].terms, candidates, fit)
        seen = Inputs(found.features)
        told: list[int] = []
        for index in np.argsort(-seen.prior, kind="stable"):
            if not candidates.failed[index] and (found.agreement[index, told] < SAME).all():
                told.append(int(index))
        if told:
            label = agreement([numbered[asked].moves, *(candidates.moves[index] for index in told)])[0, 1:]
            yield seen.case[told], seen.prior[told], seen.query[0], label
            slate, like = pool[told[:4]], found.agreement[told[0], told[:4]][None]
            filled = np.ones_like(like, np.bool_)
            share = shared_credit(filled, filled, np.zeros(1, np.bool_), like)[0]
            count[slate] += share
            reward[slate] += share * (label[0] >= SAME)


def change(asked: Sequence[Row], inputs: Sequence[int]) -> NDArray[np.float64]:
    """Returns the changes of nDCG@4 and of first places, (questions, 2), by a head with these inputs."""
    known = [row for row in asked if row[3].max() > 0]
    learned, judged = known[: int(LEARNED * len(known))], known[int(LEARNED * len(known)) :]
    case, prior, label = (np.concatenate([row[part][:LABELLED] for row in learned]) for part in (0, 1, 3))
    sizes = [len(row[3][:LABELLED]) for row in learned]
    query = np.repeat([row[2] for row in learned], sizes, axis=0)[:, [*range(OWN), *(OWN + each for each in inputs)]]
    one = np.ones(len(label), np.float32)
    group = np.repeat(np.arange(len(learned)), sizes)
    examples = Examples(case[:, None, inputs], prior[:, None], one[:, None], query, label, one, group)
    ridges = (10.0, *(ridge for ridge in RIDGES if ridge != STAY))
    (head,) = train([examples], [0], untrained(len(inputs), query.shape[1], 5), ridges)
    return np.array(
        [
            np.subtract(_worth(label, head.case_part(case[:, inputs]).mean(axis=0) + prior), _worth(label, prior))
            for case, prior, _, label in judged
        ]
    )


def _worth(label: NDArray[np.float32], scores: NDArray[np.float32]) -> tuple[float, bool]:
    """Returns the nDCG@4 of an order, and whether a best plan stands first."""
    ranked, best = label[np.argsort(-scores, kind="stable")], np.sort(label)[::-1]
    gained, most = (float(each[:4] @ DISCOUNT[: len(each[:4])]) for each in (ranked, best))
    return gained / most, bool(ranked[0] >= 0.99 * best[0])


if __name__ == "__main__":
    seeds, *chosen = sys.argv[1:]
    every = tuple(range(len(CASE)))
    sets = {
        "all": every,
        **{f"all but {name}": tuple(each for each in every if CASE[each] != name) for name in CASE},
        **{f"{name} alone": (CASE.index(name),) for name in CASE},
    }
    if chosen:
        sets = {"all": every, chosen[0]: tuple(CASE.index(name) for name in chosen[0].split(","))}
    drawn = {
        name: [list(rows(draw(int(seed), BESIDE_THE_REPOSITORY))) for seed in seeds.split(",")]
        for name, draw in STREAMS.items()
    }
    for title, inputs in sets.items():
        each = np.array(
            [np.concatenate([change(asked, inputs) for asked in run]).mean(axis=0) for run in drawn.values()]
        )
        print(title, *(f"{ndcg:+.4f} {first:+.4f}" for ndcg, first in (*each, each.mean(axis=0))), sep="  ")
