"""Inputs that the policy could have and does not: what else of a run, its task and its plan might tell that it helps.

The policy's plans are multisets of state-changing tools (``policy.evidence``). Here a plan is looked at in other ways,
each of them a multiset too, so that the product's own evidence says how well a candidate's agrees with those of the
successes near the query: with the calls' arguments as typed placeholders, with its steps in their order, as a text, and
by the errors that the run met. Beside them: how the words of the query differ from the case's task, and how long its
tools have gone unused. The session is not among them: none of these runs had one.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.learning import tau
from bench.learning.memory import Scene
from policy import evidence
from policy.logged import Floats
from retrieval.text import shortened
from writer.analysis.placeholders import abstract, form
from writer.retain.backfill import step_failed

PLANS = ("arguments", "order", "all_steps", "text", "error_signatures")
"""The other ways to look at a plan."""
SAID = {"agreement_kernel": "agree", "agreement_near": "agree_near"}
"""What is taken of the evidence on each, and what it is called here."""
NAMES = (
    *(f"{plan}_{called}" for plan in PLANS for called in SAID.values()),
    "numbers_shared",  # 0 to 1: Jaccard of the numbers and ids in the query and in the case's task; 0: neither has one
    "entities_shared",  # 0 to 1: the same of the names in them
    "negations_differ",  # 1: one of the two says no, not, never, without …, and the other does not
    "words_missing",  # 0 to 1: of the query's words, the share that the case's task has not
    "length_differs",  # |log| of the ratio of their words
    "tools_idle",  # 0 to 1: of the candidates, those that began after the plan's longest unused tool was last used
)

_SAID = [evidence.NAMES.index(name) for name in SAID]
_NUMBER = re.compile(r"[#$]?\w*\d[\w.,:/-]*")
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][\w-]+")
_NEGATION = re.compile(r"(?i)\b(?:no|not|never|none|nothing|without|cannot|unable|except|instead)\b|n't\b")
_SIGNATURE_CHARS = 200


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """What n runs say beyond what the policy sees of them.

    Attributes:
        plans: of each of PLANS, (n, v), how often each of its v forms is in the run.
        numbers, entities, words: the sets of the tasks.
        negated: (n,), whether the task says no.
        began: (n,), the runs' order in time.
        effects: (n, t), how often each state-changing tool succeeded.
    """

    plans: dict[str, Floats]
    numbers: list[frozenset[str]]
    entities: list[frozenset[str]]
    words: list[frozenset[str]]
    negated: NDArray[np.bool_]
    began: NDArray[np.int64]
    effects: Floats


def read(folder: Path, domain: tau.Domain) -> Written:
    """Returns it of the runs of the domain, which was read from the same folder."""
    runs = tau.runs_of(folder)
    texts = [run["task_text"] for run in runs]
    return Written(
        plans={name: _counts(forms) for name, forms in zip(PLANS, zip(*map(_forms, runs), strict=True), strict=True)},
        numbers=[frozenset(_NUMBER.findall(text.lower())) for text in texts],
        entities=[frozenset(_NAME.findall(text)) for text in texts],
        words=[frozenset(words) for words in domain.words],
        negated=np.array([_NEGATION.search(text) is not None for text in texts]),
        began=domain.began,
        effects=domain.effects,
    )


def _forms(run: tau.Run) -> tuple[list[str], ...]:
    """The run's plan in each of the ways of PLANS."""
    done = [step for step in run["steps"] if not step_failed(step)]
    changes = [step for step in done if tau.changes_state(step["tool"])]
    calls = [f"{step['tool']} {form(step['input'])}" for step in changes]
    order = ["", *(step["tool"] for step in changes), ""]
    steps = ["", *(step["tool"] for step in done), ""]
    said = [shortened(str(step["output"]), _SIGNATURE_CHARS) for step in run["steps"] if step_failed(step)]
    return (
        calls,
        [f"{one} {other}" for one, other in pairwise(order)],
        [f"{one} {other}" for one, other in pairwise(steps)],
        [word for call in calls for word in tau.tokens(call.replace("_", " "))],
        sorted({abstract(text) for text in said}),
    )


def _counts(forms: Iterable[Sequence[str]]) -> Floats:
    """How often each form is in each run, (n, v)."""
    counted = [Counter(each) for each in forms]
    column = {name: place for place, name in enumerate(sorted(set().union(*counted)))}
    counts = np.zeros((len(counted), len(column)))
    for row, each in enumerate(counted):
        for name, times in each.items():
            counts[row, column[name]] = times
    return counts


def tried(written: Written, scene: Scene) -> NDArray[np.float32]:
    """Returns what each would say of the scene's candidates, (k, len(NAMES)), always finite."""
    plans = [_agreement(written.plans[name][scene.case], scene.cases) for name in PLANS]
    return np.concatenate([*plans, _differences(written, scene)], axis=1, dtype=np.float32)


def _agreement(counts: Floats, cases: evidence.Cases) -> NDArray[np.float32]:
    """The product's evidence as if this were the plan, (k, len(SAID))."""
    present = counts[:, counts.any(axis=0)]
    others = replace(cases, effects=present)
    tools = evidence.Tools(np.zeros((present.shape[1], 0)), np.zeros(0), np.zeros(present.shape[1]))
    return evidence.features(others, others, tools)[:, _SAID]


def _differences(written: Written, scene: Scene) -> Floats:
    query, asked = scene.query, written.words[scene.query]
    known = [written.words[case] for case in scene.case]
    return np.array(
        [
            [_shared(written.numbers[query], written.numbers[case]) for case in scene.case],
            [_shared(written.entities[query], written.entities[case]) for case in scene.case],
            written.negated[scene.case] != written.negated[query],
            [len(asked - words) / max(len(asked), 1) for words in known],
            [abs(np.log((1 + len(asked)) / (1 + len(words)))) for words in known],
            _idle(written.began[scene.case], written.effects[scene.case]),
        ],
        dtype=np.float64,
    ).T


def _shared(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(len(one | other), 1)


def _idle(began: NDArray[np.int64], effects: Floats) -> Floats:
    """Of the candidates, the share that began after the last use of the plan's longest unused tool, (k,)."""
    used = effects > 0
    last = np.where(used, began[:, None], -1).max(axis=0, initial=-1)  # (t,)
    since = (began[:, None] > last[None, :]).mean(axis=0)
    idle: Floats = (used * since).max(axis=1, initial=0.0)
    return idle
