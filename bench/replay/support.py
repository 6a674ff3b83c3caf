"""Runs of a shop's support agent, whose right plans may change half-way."""

import random
from collections.abc import Sequence

from bench.replay.runs import Call, Run, Stream
from bench.replay.shops.parcels import PARCELS
from bench.replay.shops.shop import Request, Shop

RUNS = 160
A_DAY = 8
"""Number of runs a day."""
LOST, MISJUDGED, MENDED = 0.04, 0.03, 0.08
"""Shares of runs refused throughout, of those whose calls all went through and solved nothing, and of those that
went well after a refused call."""


def support(seed: int, shop: Shop = PARCELS) -> Stream:
    """Returns the runs of a shop with rules that stay."""
    rng = random.Random(f"{seed}:{shop.name}")
    return Stream("support", _runs(shop, shop.requests(rng, RUNS), rng))


def support_changed(seed: int, shop: Shop = PARCELS) -> Stream:
    """Returns the runs of a shop that changes the right plans of half its kinds half-way."""
    rng = random.Random(f"{seed}:{shop.name}:changed")
    changed = changed_kinds(shop, seed)
    before, after = shop.requests(rng, RUNS // 2), shop.requests(rng, RUNS // 2, changed)
    return Stream("support_changed", _runs(shop, [*before, *after], rng, changed), change=len(before))


def changed_kinds(shop: Shop, seed: int) -> frozenset[str]:
    """Returns the names of the kinds whose right plan changes, half of them."""
    names = [kind.name for kind in shop.kinds]
    return frozenset(random.Random(f"{seed}:{shop.name}:rules").sample(names, len(names) // 2))


def _runs(
    shop: Shop, requests: Sequence[Request], rng: random.Random, changed: frozenset[str] = frozenset()
) -> tuple[Run, ...]:
    return tuple(_run(shop, request, rng, number // A_DAY, changed) for number, request in enumerate(requests))


def _run(shop: Shop, request: Request, rng: random.Random, day: int, changed: frozenset[str]) -> Run:
    plans = shop.plans(request.slots) + shop.plans(request.slots, changed)
    wrong = rng.choice([plan for plan in plans if plan[0] not in request.plan])
    lot = rng.random()
    calls: tuple[Call, ...]
    if lot < LOST:
        others = [plan[0] for plan in plans if plan[0] not in request.plan and plan[0] != wrong[0]]
        calls, succeeded = (request.refusal(wrong[0]), request.refusal(rng.choice(others))), False
    elif lot < LOST + MISJUDGED:
        calls, succeeded = wrong, False
    elif lot < LOST + MISJUDGED + MENDED:
        calls, succeeded = (request.refusal(wrong[0]), *request.plan), True
    else:
        calls, succeeded = request.plan, True
    return Run(request.text, calls, succeeded, day, request.kind)
