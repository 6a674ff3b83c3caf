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

SUITE, NODE = "@modelcontextprotocol/conformance@0.1.16", "node@22"
NEEDED = 22
"""The major version of Node that the suite needs; where there is an older one, npm brings this."""
BASELINE = Path(__file__).parent / "mcp-conformance.yml"
NPM = shutil.which("npm")


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """The suite's command, installed once; skipped aloud where there is no Node, or no registry."""
    node = shutil.which("node")
    if NPM is None or node is None:
        pytest.skip("there is no Node (node and npm) on the PATH")
    version = subprocess.run((node, "--version"), capture_output=True, text=True, check=True).stdout
    too_old = int(version.removeprefix("v").partition(".")[0]) < NEEDED
    folder = tmp_path_factory.mktemp("conformance")
    wanted = (SUITE, NODE) if too_old else (SUITE,)
    npm = (NPM, "install", "--no-audit", "--no-fund", "--prefix", str(folder), *wanted)
    installed = subprocess.run(npm, capture_output=True, text=True, check=False, timeout=240)
    if installed.returncode:
        pytest.skip(f"{SUITE} cannot be installed here: {installed.stderr.strip()[-200:]}")
    modules = folder / "node_modules"
    script = modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    return (str(modules / ".bin" / "node") if too_old else node, str(script))


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
        address = f"{front.url}/mcp"
        command = (*suite, "server", "--suite", "all", "--url", address, "--expected-failures", str(BASELINE))
        done = subprocess.run(
            command, cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, check=False, timeout=500
        )
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]
