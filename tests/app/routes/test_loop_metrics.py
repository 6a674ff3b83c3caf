"""The loop is visible stage by stage in metrics and log, and names nobody."""

from uuid import uuid4

import httpx
import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from retrieval.ranking.numbers import version_label
from tests.service import Service, User

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


async def samples(anybody: httpx.AsyncClient) -> Samples:
    families = text_string_to_metric_families((await anybody.get("/metrics")).text)
    return {(each.name, frozenset(each.labels.items())): each.value for family in families for each in family.samples}


class Grown:
    """By how much the metrics grew since the one sample."""

    def __init__(self, before: Samples, after: Samples) -> None:
        self._before, self._after = before, after

    def __call__(self, name: str, **labels: str) -> float:
        key = name, frozenset(labels.items())
        return self._after[key] - self._before.get(key, 0)


@pytest.fixture
async def anybody(service: Service) -> httpx.AsyncClient:
    return await service.http(None)


async def test_each_stage_of_the_loop_is_timed_and_its_outcome_counted(anybody: httpx.AsyncClient, alice: User):
    await alice.retain("water the roses", tool_traces=[{"tool": "can", "input": {"where": "bed"}}], plan=["fill it"])
    await alice.settle()
    before = await samples(anybody)
    asked = await alice.retrieve("water the roses")
    await alice.retain(f"errand {uuid4()}", retrieval_id=asked["retrieval_id"], used_procedure_ids=[])
    await alice.settle()
    grown = Grown(before, await samples(anybody))
    for stage in ("retrieve", "reuse", "evaluate", "retain.insert"):
        assert grown("casebank_stage_seconds_count", stage=stage) == 1, stage
    assert grown("casebank_retrieval_hits_total") == 1
    assert grown("casebank_cases_shown_total") == len(asked["cases"]) == 1
    assert grown("casebank_procedures_shown_total") == len(asked["procedures"]) == 1
    assert grown("casebank_context_tokens_total") == asked["tokens"] > 0
    assert grown("casebank_policy_version_decisions_total", version=asked["policy_version"]) == 1
    assert grown("casebank_cases_judged_total", use="unsaid", reward="good") == 1


async def test_a_shown_case_is_judged_once_by_its_use_and_the_first_reward(anybody: httpx.AsyncClient, alice: User):
    case_id = await alice.retain("water the roses")
    await alice.settle()
    before = await samples(anybody)
    for used, reward in ([case_id], 1.0), ([], 0.0):
        asked = await alice.retrieve("water the roses")
        more = {"retrieval_id": asked["retrieval_id"], "used_case_ids": used, "reward": reward}
        run = await alice.retain(f"errand {uuid4()}", **more)
        await alice.settle()
        await alice.feedback(case_id=run, thumb="down")
    grown = Grown(before, await samples(anybody))
    assert grown("casebank_cases_judged_total", use="used", reward="good") == 1
    assert grown("casebank_cases_judged_total", use="unused", reward="bad") == 1
    assert grown("casebank_cases_judged_total", use="used", reward="bad") == 0


async def test_procedures_are_counted_when_they_are_learned_and_not_when_they_are_met_again(
    anybody: httpx.AsyncClient, alice: User
):
    before = await samples(anybody)
    for _ in range(2):
        await alice.retain("water the roses", tool_traces=[{"tool": "can", "input": {"where": "bed"}}], plan=["fill"])
        await alice.settle()
    grown = Grown(before, await samples(anybody))
    assert grown("casebank_procedures_learned_total", kind="script") == 1
    assert grown("casebank_worker_cases_total", how="ready") == 1
    assert grown("casebank_worker_cases_total", how="merged") == 1


async def test_the_log_tells_of_an_answer_its_policy_and_cost_and_not_what_it_was_about(alice: User):
    await alice.retain("water the roses")
    await alice.settle()
    with capture_logs() as logs:
        asked = await alice.retrieve("water the roses")
    (answered,) = [entry for entry in logs if entry["event"] == "retrieve.answered"]
    assert (answered["policy"], answered["policy_version"]) == ("default", asked["policy_version"])
    assert (answered["mode"], answered["cases"], answered["tokens"]) == ("hybrid", 1, asked["tokens"])
    assert "roses" not in str(logs)


async def test_no_metric_has_a_label_that_names_a_user_or_an_agent(alice: User):
    agent = f"gardener-{uuid4()}"
    await alice.retain("water the roses", agent=agent)
    await alice.settle()
    page = generate_latest().decode()
    assert alice.name not in page
    assert agent not in page


def test_versions_of_policies_are_labels_of_a_bounded_number():
    assert version_label("default-2") == "default-2"
    assert version_label("q-50") == "q-50"
    assert {version_label(f"q-{number}") for number in (51, 52, 10_000)} == {"q-51+"}
