"""The benchmark of findings on a few runs: what it measures is there, and nothing that is told is stale."""

from app import postgres
from bench.findings.main import findings
from tests.processes import migrated_home


async def test_a_few_runs_are_measured_and_nothing_told_is_stale():
    with migrated_home() as home:
        measured = {each.name: each for each in await findings(home, runs=3)}
        postgres.release(home)
    assert measured["findings: stale answers"].value == 0
    assert measured["findings: repeated reads spared"].value > 0
    assert len(measured) == 5
