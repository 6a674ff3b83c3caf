"""The protocol's own conformance suite against a service; what fails on purpose is in the baseline, with the reason."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.fakes.bearer_front import BearerFront
from tests.processes import Service, migrated_home

pytest.importorskip("mcp", reason="the extra mcp is not installed")

SUITE, NODE = "@modelcontextprotocol/conformance", "node@22"
NEEDED = 22
"""The major version of Node that the suite needs; where there is an older one, npm brings this."""
NPM = shutil.which("npm")


@dataclass(frozen=True)
class Leg:
    """A version of the suite that asks for a version of the protocol, and how."""

    suite: str
    protocol: str
    words: tuple[str, ...]

    @property
    def baseline(self) -> Path:
        return Path(__file__).with_name(f"mcp-conformance-{self.protocol}.yml")


LEGS = [
    Leg("0.1.16", "2025-11-25", ("--suite", "all")),
    Leg("0.2.0-alpha.12", "2026-07-28", ("--requirements", "2026-07-28")),
]


def installed(leg: Leg, folder: Path) -> tuple[str, ...]:
    """The suite's command; the test is skipped aloud where there is no Node, or no registry."""
    if not os.environ.get("CONFORMANCE"):
        pytest.skip("it fetches the suite from npm: `make test-mcp` runs it")
    node = shutil.which("node")
    if NPM is None or node is None:
        pytest.skip("there is no Node (node and npm) on the PATH")
    version = subprocess.run((node, "--version"), capture_output=True, text=True, check=True).stdout
    too_old = int(version.removeprefix("v").partition(".")[0]) < NEEDED
    wanted = (f"{SUITE}@{leg.suite}", *((NODE,) if too_old else ()))
    npm = (NPM, "install", "--no-audit", "--no-fund", "--prefix", str(folder), *wanted)
    done = subprocess.run(npm, capture_output=True, text=True, check=False, timeout=240)
    if done.returncode:
        pytest.skip(f"{wanted} cannot be installed here: {done.stderr.strip()[-200:]}")
    modules = folder / "node_modules"
    script = modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    return (str(modules / ".bin" / "node") if too_old else node, str(script))


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with migrated_home() as home, Service(home) as service:
        yield service


@pytest.mark.parametrize("leg", LEGS, ids=lambda leg: leg.protocol)
def test_each_expected_failure_stands_below_its_reason(leg: Leg):
    whole = leg.baseline.read_text()
    lines = whole[whole.index("server:") :].splitlines()[1:]
    assert lines[0].startswith("  # ")
    entries = [line for line in lines if not line.startswith("  # ")]
    assert [line.removeprefix("  - ") for line in entries] == yaml.safe_load(whole)["server"]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("leg", LEGS, ids=lambda leg: leg.protocol)
def test_nothing_fails_but_what_is_expected_to_and_nothing_of_that_passes(leg: Leg, service: Service, tmp_path: Path):
    suite = installed(leg, tmp_path)
    with BearerFront(service.url, service.bearer("ann")) as front:
        asked = ("server", *leg.words, "--url", f"{front.url}/mcp", "--expected-failures", str(leg.baseline))
        done = subprocess.run((*suite, *asked), cwd=tmp_path, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]
