"""What the learned policy is not: a network over raw embeddings, which learns how hard a query is."""

import numpy as np
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from bench.learning.banking import Log, Pools, Questions, Scorer, World
from bench.learning.linucb import Reals
from policy.logged import Floats

WIDTH, EPOCHS, BATCH, RATE, DECAY = 64, 40, 128, 2e-3, 1e-2
STEPS = 1_000
"""At most so many steps, however many rows there are: enough for EPOCHS over 3,000."""
CHUNK = 256
"""Queries scored at once."""


class RawEmbeddings:
    """An MLP on the query's vector, the case's and their product."""

    def __init__(self, query: Reals, case: Reals, reward: Floats) -> None:
        """Takes vectors (n, dimension) of queries and of the cases that they were served, and the rewards (n,)."""
        torch.manual_seed(0)
        self._net = _fitted(_pairs(query, case), reward, WIDTH)

    def scores(self, query: Reals, cases: Reals) -> Floats:
        """Returns log odds, (queries, n), for queries (queries, dimension) and cases (queries, n, dimension)."""
        return _answers(self._net, _pairs(np.broadcast_to(query[:, None], cases.shape), cases))


def raw_embeddings(world: World, log: Log) -> Scorer:
    """Returns the network, fitted to the logged rewards."""
    net = RawEmbeddings(world.asked.vectors[log.row], world.bank.vectors[log.case], log.reward)

    def score(world: World, questions: Questions, pools: Pools, _log: Log) -> Floats:
        starts = range(0, len(pools.case), CHUNK)
        chunks = [slice(first, first + CHUNK) for first in starts]
        return np.concatenate(
            [net.scores(questions.vectors[rows], world.bank.vectors[pools.case[rows]]) for rows in chunks]
        )

    return score


def classify(seen: Floats, label: Floats, others: Floats) -> Floats:
    """Returns the scores of the others by an MLP fitted to what was seen; see ``rules.Classifier``."""
    torch.manual_seed(0)
    return _answers(_fitted(seen.astype(np.float32), label, 2 * WIDTH), others.astype(np.float32))


def _pairs(query: np.ndarray, case: np.ndarray) -> np.ndarray:
    return np.concatenate([query, case, query * case], axis=-1).astype(np.float32)


def _fitted(inputs: np.ndarray, label: Floats, width: int) -> nn.Module:
    x, y = torch.from_numpy(inputs), torch.tensor(label, dtype=torch.float32)
    net = nn.Sequential(nn.Linear(x.shape[1], width), nn.ReLU(), nn.Linear(width, 1))
    optimiser = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=DECAY, fused=True)
    for _ in range(min(EPOCHS, STEPS * BATCH // len(y))):
        for rows in torch.split(torch.randperm(len(y)), BATCH):
            optimiser.zero_grad()
            loss = binary_cross_entropy_with_logits(net(x[rows])[:, 0], y[rows])
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    return net


def _answers(net: nn.Module, inputs: np.ndarray) -> Floats:
    with torch.no_grad():
        return np.asarray(net(torch.from_numpy(inputs))[..., 0].numpy(), dtype=np.float64)
