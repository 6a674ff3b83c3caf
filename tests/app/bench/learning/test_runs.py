"""The benchmark of learning: its worlds are what they say, and its table hides nothing."""

from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from app.bench.learning import banking, baselines, poison, runs, scores, tau
from app.bench.learning.learner import (
    CANARY_PLAN,
    PLAN,
    UNTRAINED,
    Prepared,
    Recipe,
    Service,
    examples,
    permuted,
    remembered,
    served,
)
from app.bench.learning.linucb import LinUcb
from app.bench.learning.main import measure, table
from app.bench.learning.memory import Memory
from app.bench.learning.raw import classify
from app.bench.learning.reuse import Stage, as_log, stage
from app.bench.learning.rules import Judged, split_gap
from app.bench.learning.scores import by_user
from app.bench.learning.speed import run as speed
from app.bench.main import as_table
from app.bench.measure import Measurement
from app.providers.wordllama import WordLlamaEmbedder
from policy.decide import CANDIDATE, Budget, Trial, decide, score
from policy.inputs import factory
from policy.train import chosen_ridges
from tests.paths import DATA

TINY = banking.Scenario(cases=120, decisions=260)
QUICK = Recipe(members=2, plan=replace(CANARY_PLAN, steps=20))


def folder(*parts: str) -> Path:
    found = DATA.joinpath(*parts)
    if not found.exists():
        pytest.skip("no data beside the repository; CASEBANK_DATA names another folder")
    return found


@pytest.fixture(scope="module")
def embedder() -> WordLlamaEmbedder:
    return WordLlamaEmbedder()


@pytest.fixture(scope="module")
async def reuse(embedder: WordLlamaEmbedder) -> Stage:
    corpus = await banking.read(folder("banking77"), embedder)
    few = np.arange(0, len(corpus.test.texts), 20)
    return stage(replace(corpus, test=corpus.test.take(few)), TINY, 0)


@pytest.fixture(scope="module")
def stream(reuse: Stage) -> Service:
    service = Service(reuse.stream, reuse.outcome, reuse.effects, 1, np.random.default_rng(0))
    served([service], QUICK, (260,))
    return service


@pytest.fixture(scope="module")
async def airline(embedder: WordLlamaEmbedder) -> tau.Domain:
    return await tau.read(folder("tau", "airline"), embedder)


@pytest.fixture(scope="module")
def fold(airline: tau.Domain) -> tau.Fold:
    return next(tau.folds(airline, [0]))


def test_the_chances_of_all_slates_of_a_decision_sum_to_one_and_the_logged_one_is_among_them(stream: Service):
    for decision in stream.log[::20]:
        arms = {"default": None, CANDIDATE: UNTRAINED}
        lottery = decide(decision.features, decision.field, 1, Trial(arms, Budget(), 0)).lottery
        assert sum(lottery.chances.values()) == pytest.approx(1)
        assert 0 < decision.chance <= 1


def test_logged_propensities_are_exact(reuse: Stage):
    """Drawn a thousand times, a first decision falls as often as its logged chance says."""
    seen: dict[tuple[int, ...], list[float]] = {}
    for seed in range(1_000):
        service = Service(reuse.stream, reuse.outcome, reuse.effects, 1, np.random.default_rng(seed))
        service.candidate = UNTRAINED
        service.advance(1)
        seen.setdefault(service.log[0].slate, []).append(service.log[0].chance)
    for chances in seen.values():
        assert len(set(chances)) == 1
        assert len(chances) / 1_000 == pytest.approx(chances[0], abs=4 * (chances[0] * (1 - chances[0]) / 1_000) ** 0.5)


def test_the_canary_serves_its_share_once_there_is_a_candidate(stream: Service):
    canary = np.array([decision.canary for decision in stream.log])
    assert not canary[:100].any()
    assert 0.1 < canary[100:].mean() < 0.4


def test_features_know_only_earlier_rewards(reuse: Stage, stream: Service):
    for now in (0, 50, 200):
        memory = remembered(reuse.effects, stream.log[:now])
        assert np.array_equal(memory.features(stream.log[now].scene), stream.log[now].features, equal_nan=True)


def test_a_stored_answer_works_when_it_is_the_querys_intent(reuse: Stage):
    works = reuse.world.works()
    for now in range(20):
        for place in range(3):
            assert reuse.outcome(now, (place,)) == (works[now, place] != reuse.world.flipped[now])
        assert reuse.outcome(now, ()) == reuse.world.flipped[now]


def test_no_question_of_the_stream_or_the_test_is_in_the_bank(reuse: Stage):
    bank = list(reuse.world.bank.texts)
    assert len(bank) == TINY.cases
    assert not set(bank) & set(reuse.world.asked.texts)
    assert reuse.world.bank.wrong.mean() == pytest.approx(0.3)


def test_all_queries_at_once_score_as_the_service_scores_each(reuse: Stage, stream: Service):
    memory = remembered(reuse.effects, stream.log)
    prepared = Prepared.of(memory, reuse.test[:20])
    for policy in (None, stream.candidate):
        expected = [score(policy, memory.features(scene)).total for scene in reuse.test[:20]]
        np.testing.assert_allclose(prepared.scores(policy), expected, atol=1e-5)


def test_decisions_that_served_nothing_are_no_reuse(stream: Service):
    log = as_log(stream.log)
    assert len(log.row) == sum(bool(decision.slate) for decision in stream.log)
    assert all(stream.log[row].slate == (place,) for row, place in zip(log.row, log.place, strict=True))


def test_permuting_keeps_the_rewards_and_nothing_else_of_them(reuse: Stage, stream: Service):
    shuffled = permuted(stream.log, reuse.effects, np.random.default_rng(0))
    assert sorted(d.reward for d in shuffled) == sorted(d.reward for d in stream.log)
    assert [d.slate for d in shuffled] == [d.slate for d in stream.log]
    assert [d.reward for d in shuffled] != [d.reward for d in stream.log]


def test_no_test_users_run_is_in_a_training_bank_or_query(airline: tau.Domain, fold: tau.Fold):
    for mode in tau.Mode:
        tested = {question.user for question in fold.test[mode]}
        trained = {question.user for question in fold.train[mode]}
        stored = {str(user) for question in fold.train[mode] for user in airline.user[question.candidates]}
        assert tested
        assert not tested & trained
        assert not tested & stored


def test_cold_banks_know_nothing_of_the_querys_user_and_warm_ones_not_the_run_itself(
    airline: tau.Domain, fold: tau.Fold
):
    for question in fold.test[tau.Mode.COLD]:
        assert question.user not in airline.user[question.candidates]
    for question in fold.test[tau.Mode.WARM]:
        assert question.run not in question.candidates


def test_a_logged_outcome_is_drawn_from_the_slates_mean_utility(airline: tau.Domain, fold: tau.Fold):
    question = max(fold.train[tau.Mode.WARM], key=lambda asked: asked.utility.sum())
    best = tuple(np.argsort(-question.utility)[: tau.PLACES].tolist())
    outcome = runs._outcome([question], np.random.default_rng(0))  # noqa: SLF001
    mean = np.mean([outcome(0, best) for _ in range(4_000)])
    assert mean == pytest.approx(0.15 + 0.7 * question.utility[list(best)].mean(), abs=0.03)


def test_a_slates_outcome_is_shared_by_its_places(airline: tau.Domain, fold: tau.Fold):
    service = runs.service(airline, fold, 40)
    service.advance(40)
    rows = examples(service.log, tau.PLACES)
    filled = np.array([len(decision.slate) for decision in service.log])
    np.testing.assert_allclose(rows.credit.sum(axis=1), filled > 0)
    np.testing.assert_allclose(rows.credit.max(axis=1), 1 / np.maximum(filled, 1) * (filled > 0))
    assert set(rows.reward) <= {0, 1}


def test_the_slates_hold_at_most_one_failure(airline: tau.Domain, fold: tau.Fold):
    service = runs.service(airline, fold, 60)
    service.candidate = UNTRAINED
    service.advance(60)
    assert all(decision.field.failed[list(decision.slate)].sum() <= 1 for decision in service.log)


def test_a_ridge_is_one_of_the_plans_and_the_largest_where_nothing_can_be_held_out(reuse: Stage, stream: Service):
    noise = np.random.default_rng(0).random(len(stream.log)) < 0.5
    rows = replace(examples(stream.log, 1), reward=noise.astype(np.float32))
    plan = replace(PLAN, steps=40)
    none = rows.take(np.zeros(len(rows), dtype=bool))
    assert chosen_ridges([none], plan, [0], factory(1, 0)) == [max(plan.ridges)]
    assert chosen_ridges([rows, none], plan, [0, 0], factory(1, 0))[0] in plan.ridges


def test_every_baseline_is_tested_on_every_query_of_both_modes(airline: tau.Domain, fold: tau.Fold):
    service = runs.service(airline, fold, 40)
    service.advance(40)
    learned = baselines.learners(airline, baselines.Told.of_log(service.log))
    memory = remembered(airline.effects, service.log)
    found = runs.tested(airline, fold, memory, {scores.DEFAULT: baselines.by(None), **baselines.FIXED, **learned})
    asked = {mode: sum(question.ideal > 0 for question in questions) for mode, questions in fold.test.items()}
    assert {mode: sum(each is mode for each, _, _ in found) for mode in tau.Mode} == asked
    named = scores.FIXED | {scores.DEFAULT, scores.ORACLE, baselines.LINUCB, baselines.RAW}
    assert all(set(ndcg) == named for _, _, ndcg in found)
    assert all(ndcg[scores.ORACLE] >= ndcg[arm] - 1e-9 for _, _, ndcg in found for arm in (scores.DEFAULT, *learned))


def test_what_the_learners_are_told_is_what_was_served(airline: tau.Domain, fold: tau.Fold):
    service = runs.service(airline, fold, 40)
    service.advance(40)
    told = baselines.Told.of_log(service.log)
    kept = [decision for decision in service.log if decision.slate]
    for decision, cases, places in zip(kept, told.cases, told.places, strict=True):
        assert cases[list(places)].tolist() == decision.scene.case[list(decision.slate)].tolist()
    assert told.reward.tolist() == [decision.reward for decision in kept]


def test_linucb_prefers_what_was_rewarded_and_then_what_is_unknown():
    seen = np.repeat([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], 50, axis=0)
    learned = LinUcb.fit(seen, np.repeat([1.0, 0.0], 50))
    good, bad, unknown = learned.scores(np.eye(3))
    assert good > unknown > bad


def test_a_split_by_decision_flatters_where_nothing_can_be_learned():
    rng = np.random.default_rng(0)
    judged = Judged(rng.normal(size=(60, 32)), rng.normal(size=(60, 8, 32)), rng.random((60, 8)) < 0.5, np.arange(60))
    gap = split_gap(judged, classify, rng)
    assert gap.by_decision > 0.9
    assert gap.by_group == pytest.approx(0.5, abs=0.1)


FLOOD = poison.Attack("copies of failures", 0.05)


async def test_an_attack_adds_wrong_answers_and_changes_nothing_else(embedder: WordLlamaEmbedder):
    corpus = await banking.read(folder("banking77"), embedder)
    clean = poison.stream(corpus, None, 0, 30)
    for attack in (FLOOD, poison.Attack("forged successes", 0.05, 10, given=True)):
        attacked = poison.stream(corpus, attack, 0, 30)
        honest = ~attacked.poison
        assert attacked.poison.sum() == 75
        assert attacked.asked.texts == clean.asked.texts
        for name in ("reward", "proven", "source"):
            assert np.array_equal(getattr(attacked.stock, name)[honest], getattr(clean.stock, name))
        assert set(attacked.stock.source[attacked.poison]).isdisjoint(clean.stock.source)
        assert attacked.stock.bank.wrong[attacked.poison].all()
        assert attacked.stock.proven[attacked.poison].all() == attack.given


async def test_the_rules_of_the_slate_leave_one_place_to_copies(embedder: WordLlamaEmbedder):
    corpus = await banking.read(folder("banking77"), embedder)
    stream = poison.stream(corpus, FLOOD, 0, 300)
    ruled, free = (poison.serve(stream, arm, 0) for arm in (poison.SERVES, poison.UNRULED))
    assert ruled.taken.max() <= 1 / poison.PLACES < free.taken.max()


def test_a_case_that_was_reused_well_is_proven(reuse: Stage):
    scene, memory = reuse.stream[0], Memory(reuse.effects)
    assert not scene.field(memory.features(scene)).proven.any()
    memory.learn(scene, (3,), 1.0)
    assert np.flatnonzero(scene.field(memory.features(scene)).proven).tolist() == [3]


def test_intervals_cluster_by_user():
    values = np.repeat([0.0, 1.0], 500)
    low, high = by_user(values, ["a"] * 500 + ["b"] * 500)
    assert (low, high) == (0, 1)


def test_a_missed_aim_is_printed_as_missed():
    rows = [
        Measurement("short", 0.5, "", "seed 0", 0.6, at_least=True, interval=(0.4, 0.6)),
        Measurement("there", 0.7, "", "seed 0", 0.6, at_least=True),
        Measurement("unproven", 0.01, "", "seed 0", 0.0, at_least=True, interval=(-0.1, 0.2), proven=True),
    ]
    console = Console(width=160, record=True, file=StringIO())
    console.print(as_table(rows))
    lines = console.export_text().splitlines()
    marks = {
        name: ("MISSED" in line, "reached" in line)
        for name in ("short", "there", "unproven")
        for line in lines
        if name in line
    }
    assert marks == {"short": (True, False), "there": (False, True), "unproven": (True, False)}


def test_a_part_without_data_is_skipped_where_everyone_sees_it(tmp_path: Path):
    said: list[str] = []
    done = measure("reuse", tmp_path, said.append)
    assert [row.name for row in done.rows] == ["reuse: SKIPPED"]
    assert "SKIPPED" in said[0]
    assert [row.name for row in table([done], 0)] == ["reuse: SKIPPED", "time reuse", "time of all these"]


def test_batched_training_is_timed_against_one_by_one():
    rows = {row.name: row for row in speed(profiles=4)}
    assert rows["speed training, hidden 0: batched"].value > 0
    assert rows["speed memory: peak resident of the benchmark"].value > 10
    assert rows["speed scoring: head alone"].value > 0
