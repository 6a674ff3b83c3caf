"""What each of the policy's inputs is worth on a domain that had no part in the training: whole domains are left out.

A head is trained on the full labels of all domains but one, each domain counting the same, and orders the questions of
that one: with all inputs, with one of them taken away, with one of them alone, and with one more of those that the
policy does not have (``tried``). The default's own order stays below all of them, so an input that the default reads
well already is worth nothing here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from bench.learning import runs, tau, tau_folds, tried
from bench.learning.learner import Recipe
from bench.learning.scores import DEFAULT, Scores, by_user, resampled
from bench.learning.worth import PLACES, Reading
from bench.measure import Measurement
from policy.decide import Policy
from policy.examples import Examples, pooled
from policy.inputs import CASE, FIRST, QUERY, Array, inputs_of
from policy.network import untrained
from policy.slate import choose, order

SEEDS = (0,)
PLAN = replace(runs.LABEL_PLAN, ridge=300.0)
ALL = "all inputs"
ALL_AND_TRIED = "all inputs and all that were tried"
NAMES = (*CASE, *tried.NAMES)
"""What an arm may see of a case, those that the policy has first."""
OF_QUERY = (*QUERY, *(f"first_{name}" for name in tried.NAMES))

Bools = NDArray[np.bool_]
Arms = Mapping[str, Bools]
"""Which inputs each arm sees, (len(NAMES),)."""
Mode = tuple[str, str]
"""A domain that was left out, and how its questions were asked."""


@dataclass(frozen=True, slots=True, eq=False)
class Met:
    """A question with every input of its candidates: case (n, len(NAMES)), query (1, len(OF_QUERY)), prior (n,)."""

    asked: runs.Asked
    case: Array
    query: Array
    prior: Array

    @classmethod
    def of(cls, asked: runs.Asked, written: tried.Written) -> "Met":
        """Returns it of a question about these runs."""
        inputs, more = inputs_of(asked.seen), tried.tried(written, asked.scene)
        first = np.argsort(-inputs.prior, kind="stable")[:FIRST]
        query = np.concatenate([inputs.query, more[first].mean(axis=0, keepdims=True)], axis=1)
        return cls(asked, np.concatenate([inputs.case, more], axis=1), query, inputs.prior)


def labels(met: Sequence[Met]) -> Examples:
    """Returns the labels of ``runs.labels`` with every input."""
    rows = runs.labels([each.asked for each in met])
    sizes = [len(each.case[: runs.LABEL_PLACES]) for each in met]
    return replace(
        rows,
        inputs=np.concatenate([each.case[: runs.LABEL_PLACES] for each in met])[:, None],
        query=np.repeat(np.concatenate([each.query for each in met]), sizes, axis=0),
    )


def arms() -> dict[str, Bools]:
    """Returns the arm of all inputs, and of each input the arm without it and the one of it alone.

    Of one that the policy does not have, in place of the arm without it, the one with it beside all that it has.
    """
    one, had = np.eye(len(NAMES), dtype=np.bool_), np.arange(len(NAMES)) < len(CASE)
    found = {ALL: had, ALL_AND_TRIED: np.ones(len(NAMES), np.bool_)}
    for place, name in enumerate(NAMES):
        other = {_without(name): had & ~one[place]} if had[place] else {_with(name): had | one[place]}
        found |= other | {_alone(name): one[place]}
    return found


def _without(name: str) -> str:
    return f"without {name}"


def _with(name: str) -> str:
    return f"with {name}"


def _alone(name: str) -> str:
    return f"{name} alone"


def seen(rows: Examples, these: Bools) -> Examples:
    """Returns the examples with the other inputs gone, and what they say of the query with them."""
    gone = {f"first_{name}" for name, is_seen in zip(NAMES, these, strict=True) if not is_seen}
    of_query = np.array([name not in gone for name in OF_QUERY])
    return replace(rows, inputs=rows.inputs * these, query=rows.query * of_query)


@dataclass(slots=True)
class Table:
    """What each arm reached on each domain left out."""

    cells: dict[Mode, Scores] = field(default_factory=dict)

    def rows(self) -> Iterator[Measurement]:
        """Yields what all inputs earn in each cell, and over the cells what each input does."""
        for (domain, mode), scores in self.cells.items():
            for arm in (ALL, ALL_AND_TRIED):
                change = scores.column(arm) - scores.column(DEFAULT)
                name = f"inputs {domain} {mode}: {arm}, learned on the other domains - default"
                detail = f"nDCG@4, paired by user; {len(change)} queries of {len(set(scores.users))} users"
                yield Measurement(name, float(change.mean()), "", detail, interval=by_user(change, scores.users))
        for name in CASE:
            yield self._mean(f"inputs {name}: with all - without", ALL, _without(name))
            yield self._mean(f"inputs {name}: alone - default", _alone(name), DEFAULT)
        for name in tried.NAMES:
            yield self._mean(f"inputs tried {name}: with it - all inputs", _with(name), ALL)
            yield self._mean(f"inputs tried {name}: alone - default", _alone(name), DEFAULT)

    def _mean(self, name: str, one: str, other: str) -> Measurement:
        """Returns the mean difference over the cells, each counting the same."""
        changes = [scores.column(one) - scores.column(other) for scores in self.cells.values()]
        users = [scores.users for scores in self.cells.values()]
        draws = [resampled(change, whose, n) for n, (change, whose) in enumerate(zip(changes, users, strict=True))]
        low, high = np.quantile(np.mean(draws, axis=0), [0.025, 0.975])
        means = [float(change.mean()) for change in changes]
        detail = ", ".join(f"{' '.join(cell)} {mean:+.3f}" for cell, mean in zip(self.cells, means, strict=True))
        return Measurement(name, float(np.mean(means)), "", detail, interval=(float(low), float(high)))


def run(domains: Mapping[str, tuple[tau.Domain, tried.Written]]) -> list[Measurement]:
    """Returns what each input is worth, each domain left out in turn."""
    asked = {name: list(_asked(*domain)) for name, domain in domains.items()}
    known = {name: labels([each for _, each in found]) for name, found in asked.items()}
    table = Table()
    for name, found in asked.items():
        policies = learned([rows for other, rows in known.items() if other != name], arms())
        for mode, each in found:
            if each.asked.question.ideal > 0:
                scores = table.cells.setdefault((name, mode.name.lower()), Scores())
                scores.add(each.asked.question.user, reached(each, policies, arms()))
    return list(table.rows())


def _asked(domain: tau.Domain, written: tried.Written) -> Iterator[tuple[tau_folds.Mode, Met]]:
    for mode, question in tau_folds.tested(domain, SEEDS):
        yield mode, Met.of(runs.Asked.of(domain, question), written)


def learned(domains: Sequence[Examples], of: Arms) -> dict[str, Policy]:
    """Returns each arm's policy, trained on these domains' labels together."""
    together = pooled(domains, 1 / len(domains))
    profiles = [seen(together, these) for these in of.values()]
    start = untrained(len(NAMES), len(OF_QUERY))
    heads = Recipe(members=1, plan=PLAN, start=start).fit(profiles, [0] * len(profiles))
    return dict(zip(of, heads, strict=True))


def reached(met: Met, policies: Mapping[str, Policy], of: Arms) -> dict[str, float]:
    """Returns nDCG@4 of the slate by the default's order and by each arm's."""
    question = met.asked.question
    candidates = met.asked.scene.field(met.asked.seen)

    def ndcg(scores: Array) -> float:
        slate = choose(candidates, order(candidates, scores), PLACES)
        return question.worth[Reading.AGREEMENT].ndcg(np.array(slate, dtype=np.int64))

    found = {DEFAULT: ndcg(met.prior)}
    for name, policy in policies.items():
        part = policy.head.case_part(met.case * of[name]).mean(axis=0)
        found[name] = ndcg(np.asarray(met.prior + policy.blend * part, np.float32))
    return found
