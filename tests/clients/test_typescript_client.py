"""The TypeScript client is of the service's OpenAPI document, and does the loop against a real service."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.clients.typescript_document import document
from tests.paths import ROOT
from tests.processes import Service, all_worked, bank, migrated_home

SOURCE = ROOT / "clients" / "typescript"
NODE, NEEDED = "node@22", 22
"""What npm brings where the Node on the PATH is older than the client needs."""
UNSAID = "declare const token: string;\ndeclare function act(context: string): Promise<string>;\n"
"""What the README's example takes from whoever reads it."""


@dataclass(frozen=True)
class Built:
    """The client, built in a folder of its own."""

    folder: Path
    path: str

    def run(self, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
        around = {**os.environ, "PATH": self.path, **more}
        return subprocess.run(
            command, cwd=self.folder, env=around, capture_output=True, text=True, check=False, timeout=240
        )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    if not os.environ.get("CLIENTS"):
        pytest.skip("it fetches packages from npm: `make test-clients` runs it")
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("there is no Node (node and npm) on the PATH")
    folder = tmp_path_factory.mktemp("typescript")
    shutil.copytree(SOURCE, folder / "client", ignore=shutil.ignore_patterns("node_modules", "dist"))
    client = Built(folder / "client", _path_with_node(folder))
    if (installed := client.run("npm", "ci", "--no-audit", "--no-fund")).returncode:
        pytest.skip(f"the client's packages cannot be had here: {installed.stderr.strip()[-200:]}")
    (example,) = re.findall(r"```ts\n(.*?)```", (SOURCE / "README.md").read_text(), re.DOTALL)
    (client.folder / "test" / "readme.ts").write_text(
        example.replace('"casebank-client"', '"../src/index.js"') + UNSAID
    )
    compiled = client.run("npm", "run", "build")
    assert compiled.returncode == 0, compiled.stdout
    return client


def _path_with_node(folder: Path) -> str:
    """Returns a PATH whose first Node is new enough; the tests are skipped aloud where there is none."""
    path = os.environ["PATH"]
    node = shutil.which("node") or "node"
    version = subprocess.run((node, "--version"), capture_output=True, text=True, check=True).stdout
    if int(version.removeprefix("v").partition(".")[0]) >= NEEDED:
        return path
    npm = ("npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder / "node"), NODE)
    done = subprocess.run(npm, capture_output=True, text=True, check=False, timeout=240)
    if done.returncode:
        pytest.skip(f"Node is {version.strip()}, and {NODE} cannot be installed here: {done.stderr.strip()[-200:]}")
    return f"{folder / 'node' / 'node_modules' / '.bin'}:{path}"


@pytest.fixture(scope="module")
def service(built: Built) -> Iterator[Service]:
    with migrated_home() as home, Service(home) as service:
        yield service


def test_the_clients_document_is_the_services():
    kept = json.loads((SOURCE / "openapi.json").read_text())
    assert kept == document(), "the API has changed: `make client-types`"


def test_the_clients_types_are_those_of_its_document(built: Built):
    made = built.run("npm", "run", "types")
    assert made.returncode == 0, made.stderr
    kept = (SOURCE / "src" / "schema.ts").read_text()
    assert (built.folder / "src" / "schema.ts").read_text() == kept, "`make client-types`"


def test_every_run_of_the_client_ends_in_a_case_that_is_joined_to_its_retrieval(built: Built, service: Service):
    token = service.bearer("ann")["Authorization"].removeprefix("Bearer ")
    done = built.run("npm", "test", CASEBANK_URL=service.url, CASEBANK_TOKEN=token)
    assert done.returncode == 0, done.stdout
    assert re.search(r"(skipped|cancelled|todo|fail) [1-9]", done.stdout) is None, done.stdout
    with service.client("ann") as client:
        all_worked(client)
        cases = {case["task"]: case for case in bank(client) if case["agent"] == "db-operator"}
    ended = {task: case["outcome"] for task, case in cases.items()}
    assert ended == {"rename a column": "success", "drop a column": "failure", "add a column": "success"}
    assert all(cases[task]["retrieval_id"] for task in ("rename a column", "drop a column"))
