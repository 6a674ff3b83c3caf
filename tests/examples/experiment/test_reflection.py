"""Reflection is measured by revisions alone, on the same tasks, and by an environment whose rules can change."""

from dataclasses import replace

import pytest

from bench.experiment import rows_of
from examples.clerk.environment import ClerksOffice
from examples.experiment.prediction import predictions
from examples.experiment.report import Report
from examples.experiment.run import run_experiment
from tests.service import Service, User


@pytest.fixture(scope="module")
async def user(service: Service) -> User:
    return await service.user()


@pytest.fixture(scope="module")
async def office(user: User) -> Report:
    http = (await user.backend()).http
    return await run_experiment(ClerksOffice(), http, replace(ClerksOffice.size, practice=4, test=2, ks=(0,)))


async def versions(user: User, bank: str) -> set[tuple[int, str, bool]]:
    answer = await user.http.get("/v1/procedures", params={"agent": f"experiment-office-{bank}", "limit": 200})
    return {(each["version"], each["kind"], each["pinned"]) for each in answer.json()["procedures"]}


async def test_failed_runs_revise_procedures_in_the_one_bank_and_in_the_other_none(office: Report, user: User):
    assert office.reflection.failed
    assert (2, "revision", False) in await versions(user, "revised")
    kept = await versions(user, "kept")
    assert {version for version, _, _ in kept} == {1}
    assert not any(kind == "revision" for _, kind, _ in kept)


def test_both_banks_are_tested_on_the_same_tasks_under_the_new_rules(office: Report):
    kept, revised = ([each.task_id for each in arm] for arm in (office.reflection.kept, office.reflection.revised))
    assert kept == revised
    assert len(kept) == 4 * 2
    assert not set(kept) & {each.task_id for each in office.sweep[0]}
    assert len(office.reflected) == 4 * 2


def test_procedures_are_followed_and_named_and_revised_ones_save_steps(office: Report):
    assert any(each.reused for each in office.reflection.revised)
    assert office.reflection_steps.value < 0
    assert office.reflection_steps.low <= office.reflection_steps.value <= office.reflection_steps.high
    numbers = office.as_dict()
    verdicts = {each["key"]: (each["measured"], each["verdict"]) for each in numbers["predictions"]}
    assert verdicts["reflection_steps"] == (round(office.reflection_steps.value, 4), "as predicted")
    assert set(numbers["differences"]["reflection_success_points"]) == {"value", "low", "high"}
    assert {"new rules, kept", "new rules, revised"} <= set(numbers["arms"])


def test_the_benchmark_has_both_numbers(office: Report):
    rows = {row.name: row.value for row in rows_of(office)}
    assert rows["experiment office: success won by revisions"] == office.reflection_success.value / 100
    assert rows["experiment office: change of steps by revisions"] == office.reflection_steps.value


def test_the_claim_says_what_would_prove_it_wrong():
    claims = {each.key: each for each in predictions(40)}
    assert claims["reflection"].verdict(0.0) == claims["reflection_steps"].verdict(0.0) == "FALSIFIED"
    assert "falsified below +2.0" in claims["reflection"].text
