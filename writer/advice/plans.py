"""The plans of like runs that are told at a failed call, after the fixes."""

from collections.abc import Mapping, Sequence
from uuid import UUID

import numpy as np

from policy.channels import Terms
from policy.plans import RunsThatWentWell, plan_likeness
from retrieval.advice.failures import PLANS_OF, FailureRow
from retrieval.advice.text import ToldPlan
from retrieval.database.fast_path import FastConnection
from retrieval.sealed import Opener, opened
from retrieval.tables.kinds import went_well
from retrieval.text import shortened
from writer.analysis.dangers import names_danger
from writer.analysis.fixes import MOST_PARTS, PART_CHARS

MOST_OPENED = 16
"""Maximum number of runs whose plans are decrypted; more than are told, because several runs may have the same plan."""


async def plans_for(
    connection: FastConnection, opener: Opener, rows: Sequence[FailureRow], terms: Mapping[str, Terms], most: int
) -> list[ToldPlan]:
    """Returns different plans of earlier successful runs, those of the runs most like the asking run first.

    A plan that the asking run was told before is left out.

    A plan that destroys something or skips a check is told only if its run is proven.

    Args:
        connection: the user's connection.
        opener: decrypts the plans.
        rows: the agent's earlier failures and its newest runs.
        terms: keyed hashes of the failed call's words, by the names of ``policy.advice.SHARES``.
        most: maximum number of plans; 0: none.
    """
    runs: dict[UUID, list[FailureRow]] = {}
    for row in rows:
        if row.case_id and row.newest and not row.shown_here and went_well(row.outcome, row.reward, row.reward_source):
            runs.setdefault(row.case_id, []).append(row)
    if not runs or not most:
        return []
    ids, of_run = list(runs), [each[0] for each in runs.values()]
    met = [(number, row.error) for number, each in enumerate(runs.values()) for row in each if row.place is not None]
    past = RunsThatWentWell(
        task=[np.array(row.terms, np.int32) for row in of_run],
        errors=[np.array(terms, np.int32) for _, terms in met],
        met_by=np.array([number for number, _ in met], np.int32),
        proven=np.array([row.proven for row in of_run], np.bool_),
    )
    likeness = plan_likeness(past, terms["task"], terms["error"])
    best = [place for place in np.argsort(-likeness, kind="stable")[:MOST_OPENED] if likeness[place] > 0]
    found = await connection.all(PLANS_OF, {"case_ids": [ids[place] for place in best]})
    plans = {row.id: opened(row).plan for row in await opener.rows(connection, found)}
    told: dict[tuple[str, ...], ToldPlan] = {}
    for place in best:
        plan = tuple(shortened(step, PART_CHARS) for step in plans.get(ids[place], ())[:MOST_PARTS])
        proven, dangerous = of_run[place].proven, any(map(names_danger, plan))
        if plan and plan not in told and (proven or not dangerous):
            told[plan] = ToldPlan(plan, ids[place], round(float(likeness[place]), 3), proven, dangerous)
    return list(told.values())[:most]
