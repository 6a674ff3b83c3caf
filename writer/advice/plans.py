"""The plans of like runs that are told at a failed call, after the fixes."""

from collections.abc import Sequence
from typing import cast
from uuid import UUID

import numpy as np
from pydantic import JsonValue

from policy.plans import RunsThatWentWell, plan_likeness
from retrieval.advice.failures import PLANS_OF, FailureRow
from retrieval.advice.text import ToldPlan
from retrieval.database.fast_path import FastConnection
from retrieval.sealed import MOVES, Opener, opened
from retrieval.tables.kinds import went_well
from retrieval.text import shortened
from writer.advice.answer import Asked
from writer.analysis.dangers import names_danger
from writer.analysis.fixes import MOST_PARTS, PART_CHARS
from writer.analysis.moves import moves_of_call
from writer.retain.plan import CallMade, plan_of

MOST_OPENED = 16
"""Maximum number of runs whose plans are decrypted; more than are told, because several runs may have the same plan."""


async def plans_for(
    connection: FastConnection, opener: Opener, rows: Sequence[FailureRow], asked: Asked
) -> list[ToldPlan]:
    """Returns different plans of earlier successful runs, those of the runs most like the asking run first.

    A plan that the asking run was told before is left out, and so is one whose calls the run tried.

    A plan that destroys something or skips a check is told only if its run is proven.
    """
    runs: dict[UUID, list[FailureRow]] = {}
    for row in rows:
        if row.case_id and row.newest and not row.shown_here and went_well(row.outcome, row.reward, row.reward_source):
            runs.setdefault(row.case_id, []).append(row)
    if not runs or not asked.failed.plans:
        return []
    ids, of_run = list(runs), [each[0] for each in runs.values()]
    met = [(number, row.error) for number, each in enumerate(runs.values()) for row in each if row.place is not None]
    past = RunsThatWentWell(
        task=[np.array(row.terms, np.int32) for row in of_run],
        errors=[np.array(terms, np.int32) for _, terms in met],
        met_by=np.array([number for number, _ in met], np.int32),
        proven=np.array([row.proven for row in of_run], np.bool_),
    )
    likeness = plan_likeness(past, asked.terms["task"], asked.terms["error"])
    best = [place for place in np.argsort(-likeness, kind="stable")[:MOST_OPENED] if likeness[place] > 0]
    found = await connection.all(PLANS_OF, {"case_ids": [ids[place] for place in best]})
    steps, moves = _tried(asked)
    seal = await opener.seal_of(connection, found)
    plans = {
        row.id: plan
        for row in found
        if not {*(plan := opened(row, seal).plan)} <= steps
        and not (len({*row.moves}) < len(row.moves) and {*row.moves} <= moves)  # a change stands in it several times
    }
    told: dict[tuple[str, ...], ToldPlan] = {}
    for place in best:
        plan = tuple(shortened(step, PART_CHARS) for step in plans.get(ids[place], ())[:MOST_PARTS])
        proven, dangerous = of_run[place].proven, any(map(names_danger, plan))
        if plan and plan not in told and (proven or not dangerous):
            told[plan] = ToldPlan(plan, ids[place], round(float(likeness[place]), 3), proven, dangerous)
    return list(told.values())[: asked.failed.plans]


def _tried(asked: Asked) -> tuple[set[str], set[int]]:
    """Returns the failed call and those tried since as steps of a plan, and the keyed hashes of their moves.

    Calls with a statement or with code have no moves here: other statements of one kind have the same.
    """
    calls = (asked.failed.call, *asked.failed.tried)
    steps = {
        step
        for call in calls
        for step in plan_of([CallMade(tool=call.tool, input=cast("JsonValue", call.arguments), failed=False)])
    }
    each = ([move for move, _ in moves_of_call(call)] for call in calls)
    moves = [
        move
        for first, *rest in each
        if all(move.startswith(first.removeprefix("tool:")) for move in rest)
        for move in (first, *rest)
    ]
    return steps, {*asked.words.numbers(MOVES, moves)}
