"""The null arm: what becomes of a bank that does harm, and what it costs a good one to find out.

A service decides, tries out, trains, judges and promotes as the product does, a night after every NIGHT decisions. An
agent without memory earns ALONE; what a slate earns is the world's.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from bench.learning.banking import Corpus, Scenario, world
from bench.learning.memory import Memory, Scene
from bench.learning.stock import Stock
from bench.measure import Measurement
from policy import default, features
from policy.decide import DEFAULT, SERVING, Budget, Policy, Trial, decide
from policy.examples import split
from policy.held_out import held_out_log_loss
from policy.inputs import factory
from policy.logged import Floats
from policy.slate import Slate
from policy.train import RIDGES, Plan, train
from policy.weights import pack
from retrieval.tables.kinds import PolicyStatus
from writer.training.candidates import COMPARED, HELD_OUT, LEAST_DIFFERENT
from writer.training.decision_log import LoggedDecision
from writer.training.fit import Demand
from writer.training.lifecycle import PolicyRow
from writer.training.training_data import differing, examples
from writer.training.trial import policy_in, transitions_of

WORLDS = 6
NIGHT = 100
KNOWN, SEEN = 1_000, 500
"""Decisions after which it is to be known, and on how many further ones it is counted."""
PLACES = 4
ALONE, HARMED, HELPED, MISLED = 0.5, 0.25, 0.75, 0.45
"""Rewards to expect: without memory; with a harmful failure; with a right answer among those told, and with none."""
TOLD, PRICE = 10.0, 1.0
DEMAND = Demand()
PLAN = Plan(ridges=RIDGES)
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)

Earns = Callable[[int, Slate], float]
"""Returns the reward to expect, 0 to 1, of a slate shown on the scene of this number."""


@dataclass(frozen=True, slots=True, eq=False)
class Bank:
    """A stream of queries, the plans of the bank's cases (cases, tools), and what slates earn."""

    scenes: Sequence[Scene]
    effects: Floats
    earns: Earns


@dataclass(slots=True, eq=False)
class Life:
    """A profile's life: its log, its policies, and what leaving slates empty has cost by each decision, in reward."""

    bank: Bank
    rng: np.random.Generator
    log: list[LoggedDecision] = field(default_factory=list)
    live: list[PolicyRow] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    trained_at: int = 0
    versions: int = 0
    memory: Memory = field(init=False)

    def __post_init__(self) -> None:
        """Begins with nothing remembered."""
        self.memory = Memory(self.bank.effects)

    def advance(self, decisions: int) -> None:
        """Decides until so many are logged, with a night after every NIGHT of them."""
        while len(self.log) < decisions:
            for _ in range(NIGHT):
                self._decide()
            self._night()

    def _decide(self) -> None:
        now = len(self.log)
        scene = self.bank.scenes[now]
        seen = self.memory.features(scene)
        arms: dict[str, Policy | None] = {DEFAULT: None}
        arms |= {row.status: self._servable(row) for row in self.live}
        decided = decide(seen, scene.field(seen), PLACES, Trial(arms, Budget(), int(self.rng.integers(2**63))))
        reward = float(self.rng.random() < self.bank.earns(now, decided.slate))
        policy = arms[decided.arm]
        told = self.bank.earns(now, decided.slates[DEFAULT])
        self.costs.append(decided.lottery.chance(()) * (told - ALONE))
        self.log.append(
            LoggedDecision(
                group=scene.query,
                features=seen,
                field=scene.field(seen),
                k=PLACES,
                slate=decided.slate,
                usage_known=False,
                used=(False,) * len(decided.slate),
                agreed=(np.nan,) * len(decided.slate),
                propensity=decided.lottery.chance(decided.slate),
                arm=decided.arm,
                version=default.VERSION if policy is None else policy.version,
                reward=reward,
                at=BEGAN + timedelta(minutes=now),
            )
        )
        self.memory.learn(scene, decided.slate, reward)

    def _servable(self, row: PolicyRow) -> Policy | None:
        policy = policy_in(row)
        return policy and replace(policy, differs=float(str(row.metrics["differs"])))

    def _night(self) -> None:
        """Judges the trial and watches what serves; trains a candidate if there is enough that is new."""
        transitions, ended = transitions_of(self.live, self.log)
        for transition in transitions:
            self._apply(transition.policy, transition.status, dict(transition.columns))
        fresh = len(self.log) - self.trained_at
        if ended is None and len(self.log) >= DEMAND.decisions and fresh >= DEMAND.fresh:
            self._train()

    def _apply(self, changed: PolicyRow, status: str | None, columns: dict[str, object]) -> None:
        rest = [row for row in self.live if row is not changed]
        if status == "rolled_back":
            self.live = []
        elif status == SERVING:
            self.live = [replace(changed, status="serving", **columns)]  # type: ignore[arg-type]
        elif status is None:
            self.live = [*rest, replace(changed, **columns)]  # type: ignore[arg-type]
        else:
            self.live = rest

    def _train(self) -> None:
        known = examples(self.log)
        late = split(known.group, HELD_OUT)
        begin = factory(DEMAND.members, DEMAND.hidden)
        early, head = train([known.take(~late), known], PLAN, [0, 0], begin)
        blend = len(known) / (len(known) + DEMAND.half)
        measured = held_out_log_loss(known.take(late), early, blend)
        self.trained_at = len(self.log)
        self.versions += 1
        weights, checksum = pack(head, features.VERSION)
        status: PolicyStatus = "candidate"
        at = self.log[-1].at + timedelta(seconds=1)
        row = PolicyRow(
            "user", "", self.versions, status, weights, checksum, blend, len(known), {}, None, at, None, stands=True
        )
        serving = next((each for each in self.live if each.status == "serving"), None)
        candidate = policy_in(row)
        differs = differing(self.log[-COMPARED:], candidate, policy_in(serving)) if candidate else 0.0
        if differs >= LEAST_DIFFERENT and measured.log_loss_gain >= -2 * measured.log_loss_gain_error:
            self.live.append(replace(row, metrics={"differs": differs}))

    def told(self, first: int, last: int) -> float:
        """Returns on which share of these decisions a case was told."""
        return float(np.mean([bool(entry.slate) for entry in self.log[first:last]]))


def harmful(corpus: Corpus, seed: int) -> Bank:
    """Returns a bank of nothing but failures, each of which does harm."""
    return _bank(corpus, seed, failed=1.0, earned=lambda _right: HARMED)


def good(corpus: Corpus, seed: int, failed: float = 0.3) -> Bank:
    """Returns a bank of which so many failed and the others are right, but for a third that only say so."""
    return _bank(corpus, seed, failed=failed, earned=lambda right: HELPED if right else MISLED)


def _bank(corpus: Corpus, seed: int, *, failed: float, earned: Callable[[bool], float]) -> Bank:
    rng = np.random.default_rng(seed)
    drawn = world(corpus, Scenario(decisions=KNOWN + SEEN), rng)
    answers = drawn.bank.answers
    effects = np.eye(corpus.intents)[answers]
    lost = rng.random(len(answers)) < failed
    stock = Stock(
        drawn.bank, effects, np.where(lost, 0.0, 1.0), np.zeros(len(answers), np.bool_), np.arange(len(answers))
    )

    def earns(now: int, slate: Slate) -> float:
        if not slate:
            return ALONE
        cases = drawn.pools.case[now][list(slate)]
        return earned(bool(((answers[cases] == drawn.asked.intents[now]) & ~lost[cases]).any()))

    return Bank(stock.scenes(drawn.asked, drawn.pools), effects, earns)


def run(corpus: Corpus, worlds: int = WORLDS) -> list[Measurement]:
    """Returns how often a harmful bank is told, and what empty slates cost a good one."""
    lives = [_lived(harmful(corpus, seed), seed) for seed in range(worlds)]
    told = [100 * life.told(KNOWN, KNOWN + SEEN) for life in lives]
    served = sum(any(row.status == "serving" for row in life.live) for life in lives)
    detail = f"mean of {worlds} worlds, at most {max(told):.0f} %; {served} with a policy promoted"
    before = [100 * life.told(0, KNOWN) for life in lives]
    rows = [
        Measurement("harmful bank: told after 1,000 decisions", float(np.mean(told)), "%", detail, TOLD),
        Measurement("harmful bank: told in the first 1,000", float(np.mean(before)), "%", f"mean of {worlds} worlds"),
    ]
    for name, failed in (("30 % failures", 0.3), ("no failures", 0.0), ("70 % failures", 0.7)):
        found = [_lived(good(corpus, seed, failed), seed) for seed in range(worlds)]
        for what, part in (("first 1,000", slice(0, KNOWN)), ("next 500", slice(KNOWN, None))):
            price = [100 * float(np.mean(life.costs[part])) for life in found]
            empty = 100 * (1 - np.mean([life.told(*part.indices(KNOWN + SEEN)[:2]) for life in found]))
            detail = f"mean of {worlds} worlds, at most {max(price):.2f}; {empty:.1f} % empty"
            rows.append(
                Measurement(f"good bank, {name}: price in the {what}", float(np.mean(price)), "points", detail, PRICE)
            )
    return rows


def _lived(bank: Bank, seed: int) -> Life:
    life = Life(bank, np.random.default_rng([seed, 7]))
    life.advance(KNOWN + SEEN)
    return life
