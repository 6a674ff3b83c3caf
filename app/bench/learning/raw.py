"""What the learned policy is not: a network over raw embeddings, which learns how hard a query is."""

import numpy as np
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from app.bench.learning.banking import Log, Pools, Questions, Scorer, World
from policy.logged import Floats

WIDTH, EPOCHS, BATCH, RATE, DECAY = 64, 40, 64, 1e-3, 1e-2
CHUNK = 256
"""Queries scored at once."""


def raw_embeddings(world: World, log: Log) -> Scorer:
    """Returns an MLP on the query's vector, the case's and their product, fitted to the logged rewards."""
    torch.manual_seed(0)
    query, case = world.asked.vectors[log.row], world.bank.vectors[log.case]
    net = _fitted(_pairs(query, case), log.reward, WIDTH)

    def score(world: World, questions: Questions, pools: Pools, _log: Log) -> Floats:
        parts = []
        for first in range(0, len(pools.case), CHUNK):
            cases = world.bank.vectors[pools.case[first : first + CHUNK]]
            asked = np.broadcast_to(questions.vectors[first : first + CHUNK, None], cases.shape)
            parts.append(_answers(net, _pairs(asked, cases)))
        return np.concatenate(parts)

    return score


def classify(seen: Floats, label: Floats, others: Floats) -> Floats:
    """Returns the scores of the others by an MLP fitted to what was seen; see ``rules.Classifier``."""
    torch.manual_seed(0)
    return _answers(_fitted(seen.astype(np.float32), label, 2 * WIDTH), others.astype(np.float32))


def _pairs(query: np.ndarray, case: np.ndarray) -> np.ndarray:
    return np.concatenate([query, case, query * case], axis=-1)


def _fitted(inputs: np.ndarray, label: Floats, width: int) -> nn.Module:
    x, y = torch.from_numpy(inputs), torch.tensor(label, dtype=torch.float32)
    net = nn.Sequential(nn.Linear(x.shape[1], width), nn.ReLU(), nn.Linear(width, 1))
    optimiser = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=DECAY)
    for _ in range(EPOCHS):
        for rows in torch.split(torch.randperm(len(y)), BATCH):
            optimiser.zero_grad()
            loss = binary_cross_entropy_with_logits(net(x[rows])[:, 0], y[rows])
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    return net


def _answers(net: nn.Module, inputs: np.ndarray) -> Floats:
    with torch.no_grad():
        return np.asarray(net(torch.from_numpy(inputs))[..., 0].numpy(), dtype=np.float64)
