"""A shop whose calls all go through: outcomes alone tell which plan is right, before and after its rules change.

For each request the agent tries the two plans that its memory ranks first, then others by lot, until one is right. Each
try is a run of its own, with its outcome. Half-way, half of the kinds of requests get another right plan.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from bench.measure import Measurement
from bench.replay.loops import Memory, Plan
from bench.replay.runs import Run
from bench.replay.shops.parcels import PARCELS
from bench.replay.support import A_DAY, RUNS, changed_kinds

KINDS, TOLD, TRIES = 6, 2, 6
"""Kinds of requests; plans of the memory that are tried; tries for one request."""
CHANGE, SOON = RUNS // 2, 30
"""Requests before the change of rules, and those after it in which it is new."""
SPANS: Mapping[str, slice] = {
    "before the change": slice(CHANGE // 2, CHANGE),
    f"in {SOON} requests after it": slice(CHANGE, CHANGE + SOON),
    "later": slice(CHANGE + SOON, RUNS),
}


def tries_of(memory: Memory, seed: int) -> NDArray[np.intp]:
    """Returns the number of tries for each request, (RUNS,); TRIES + 1 where none was right."""
    rng = random.Random(f"{seed}:judged")
    shop = replace(PARCELS, kinds=tuple(rng.sample(PARCELS.kinds, KINDS)))
    changed = changed_kinds(shop, seed)
    tries = []
    for number, request in enumerate([*shop.requests(rng, CHANGE), *shop.requests(rng, RUNS - CHANGE, changed)]):
        told = _distinct(shop.adapted(plan, request.slots) for plan in memory.recall(request.text, None))[:TOLD]
        others = shop.plans(request.slots) + shop.plans(request.slots, changed)
        rng.shuffle(others)
        plans = _distinct([*told, *others])[:TRIES]
        right = next((place for place, plan in enumerate(plans) if plan == request.plan), TRIES)
        for plan in plans[: right + 1]:
            memory.keep(Run(request.text, plan, plan == request.plan, number // A_DAY, request.kind))
        tries.append(right + 1)
    return np.array(tries)


def _distinct(plans: Iterable[Plan]) -> list[Plan]:
    found = list[Plan]()
    for plan in plans:
        if plan not in found:
            found.append(plan)
    return found


def table(tries: Mapping[str, Sequence[NDArray[np.intp]]]) -> Table:
    """Returns how often each memory's first plan was right, and the tries a request, in each span."""
    shown = Table(title="A shop whose calls all go through: share right at the first try, tries a request")
    for heading in ("memory", *SPANS):
        shown.add_column(heading, justify="left" if heading == "memory" else "right")
    for name, played in tries.items():
        spans = [np.concatenate([each[span] for each in played]) for span in SPANS.values()]
        shown.add_row(name, *(f"{(span == 1).mean():.3f}  {span.mean():.2f}" for span in spans))
    return shown


def aims(tries: Mapping[str, Sequence[NDArray[np.intp]]]) -> list[Measurement]:
    """Returns the share right at the first try with casebank less that with words in common, in each span."""
    measured = []
    for name, span in SPANS.items():
        casebank, words = (
            float(np.mean([each[span] == 1 for each in tries[memory]])) for memory in ("casebank", "words in common")
        )
        title = f"judged shop, {name}: right at the first try, casebank minus words"
        measured.append(Measurement(title, casebank - words, "", f"{casebank:.3f}", 0.0, at_least=True))
    return measured
