"""The protocol's own conformance suite against a service; what fails on purpose is in the baseline, with the reason."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.app.processes import Service, new_home
from tests.fakes.bearer_front import BearerFront

pytest.importorskip("mcp", reason="the extra mcp is not installed")

SUITE = "@modelcontextprotocol/conformance@0.1.16"
BASELINE = Path(__file__).parent / "conformance-baseline.yml"
NPX = shutil.which("npx")


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """The suite's command, installed once; skipped aloud where there is no Node, or no registry."""
    if NPX is None:
        pytest.skip("there is no Node (npx) on the PATH")
    folder = tmp_path_factory.mktemp("conformance")
    npm = (str(Path(NPX).with_name("npm")), "install", "--no-audit", "--no-fund", "--prefix", str(folder), SUITE)
    installed = subprocess.run(npm, capture_output=True, text=True, check=False, timeout=240)
    if installed.returncode:
        pytest.skip(f"{SUITE} cannot be installed here: {installed.stderr.strip().splitlines()[-1:]}")
    return (str(folder / "node_modules" / ".bin" / "conformance"),)


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with new_home() as home, Service(home) as service:
        yield service


def test_each_expected_failure_has_its_reason():
    lines = BASELINE.read_text().splitlines()
    entries = [place for place, line in enumerate(lines) if line.startswith("  - ")]
    assert len(entries) == len(yaml.safe_load(BASELINE.read_text())["server"])
    reasons = [place for place, line in enumerate(lines) if line.startswith("  # ")]
    assert all(any(reason < entry for reason in reasons) for entry in entries)


@pytest.mark.timeout(600)
def test_nothing_fails_but_what_is_expected_to_and_nothing_of_that_passes(
    suite: tuple[str, ...], service: Service, tmp_path: Path
):
    with BearerFront(service.url, service.bearer("ann")) as front:
        command = (*suite, "server", "--url", f"{front.url}/mcp", "--expected-failures", str(BASELINE))
        done = subprocess.run(
            command, cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, check=False, timeout=500
        )
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]
