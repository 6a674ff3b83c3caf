"""The benchmark of findings on a few runs: what it measures is there, and nothing that is told is stale."""

from pathlib import Path

import pytest

from app import postgres
from bench.findings.main import findings


async def test_a_few_runs_are_measured_and_nothing_told_is_stale(tmp_path_factory: pytest.TempPathFactory):
    home = tmp_path_factory.mktemp("findings", numbered=True)
    try:
        measured = {each.name: each for each in await findings(Path(home), runs=3)}
    finally:
        postgres.release(home)
    assert measured["findings: stale answers"].value == 0
    assert measured["findings: repeated reads spared"].value > 0
    assert len(measured) == 5
