"""Plans at a failed call: finds earlier runs that went well at a similar task, to tell beside a fix.

A fix (``policy.advice``) is known only if a run met the failure and got past it. A run that never met the failure may
have done the task in another way, so its plan may help, too. The likeness of a run to the failed one is the mean of two
cosines under idf (``policy.channels``): of their tasks, and of the failed call's error and the likest error that the
run met. The likeness fades by (1 + runs since) ** -FADE, so that of equally similar runs the newest comes first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from policy.advice import Flags
from policy.agreement import Matrix, Moves
from policy.channels import Terms, likeness
from policy.history import is_mostly_proven

FADE = 0.02


@dataclass(frozen=True, slots=True, eq=False)
class RunsThatWentWell:
    """The n runs of one bank that went well, the oldest first.

    Attributes:
        task: terms of each run's task.
        errors: terms of each error that these runs met, k in all.
        met_by: (k,), index of the run that met each error.
        proven: (n,), true if others than the run itself said that it went well.
    """

    task: Sequence[Terms]
    errors: Sequence[Terms]
    met_by: Moves
    proven: Flags


def plan_likeness(past: RunsThatWentWell, task: Terms, error: Terms) -> Matrix:
    """Returns the likeness of each past run, (n,), 0 to 1, to a run of this task whose call failed with this error.

    In a mostly proven bank, runs that are not proven have the likeness 0.
    """
    runs = len(past.task)
    of_error = np.zeros(runs, dtype=np.float32)
    np.maximum.at(of_error, past.met_by, likeness([error], past.errors)[0])
    since = np.arange(runs - 1, -1, -1, dtype=np.float32)
    of_both = (likeness([task], past.task)[0] + of_error) / np.float32(2) * (1 + since) ** np.float32(-FADE)
    return np.asarray(np.clip(of_both * past.proven if is_mostly_proven(past.proven) else of_both, 0, 1), np.float32)
