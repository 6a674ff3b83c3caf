"""Each block of the pages is run by a test or listed with why not; what the pages name by the way is there."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command

from app.cli import COMMANDS, body_of
from app.training.command import main as train
from tests.paths import ROOT
from tests.service import Service

PAGES = [
    *("README.md", "clients/python/README.md", "clients/typescript/README.md"),
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")),
]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
FIGURE = ""
"""The language of a block that is a drawing or an answer."""

PAGE_TESTS = "tests/app/end_to_end/test_pages.py"
BACKUP, OWN_DATABASE = "tests/app/backup/test_backup.py", "tests/app/backup/test_backup_own_database.py"
DEPLOY, FRAMEWORKS = "tests/app/end_to_end/test_deploy_page.py", "tests/clients/frameworks/test_readme.py"
PROXIES = "tests/app/end_to_end/test_deploy_proxies.py"
FINDINGS, MCP = "tests/app/end_to_end/test_execution_memory.py", "tests/app/end_to_end/test_mcp_docs.py"
INSERT, SEARCH = "tests/app/end_to_end/test_insert_from_sql.py", "tests/app/end_to_end/test_search_from_sql.py"
PYTHON, TYPESCRIPT = "tests/clients/test_python_client.py", "tests/clients/test_typescript_client.py"

RUN_BY: dict[str, tuple[str | None, ...]] = {
    "README.md": (None, None, None, PAGE_TESTS),
    "clients/python/README.md": (None, PYTHON, *(FRAMEWORKS,) * 6),
    "clients/typescript/README.md": (None, TYPESCRIPT),
    "docs/advice.md": ("tests/app/routes/test_advice.py",),
    "docs/backup.md": (BACKUP, BACKUP, *(OWN_DATABASE,) * 6),
    "docs/console.md": (PAGE_TESTS,),
    "docs/deploy.md": (*(DEPLOY,) * 5, None, PROXIES, PROXIES),
    "docs/execution-memory.md": (FINDINGS,) * 3,
    "docs/experiment.md": (PAGE_TESTS,),
    "docs/five-minutes.md": (PAGE_TESTS,) * 5,
    "docs/impact.md": (PAGE_TESTS,),
    "docs/mcp.md": (None, MCP, None, MCP, MCP, MCP),
    "docs/n8n.md": (SEARCH, INSERT, INSERT, SEARCH, INSERT),
    "docs/operating.md": (BACKUP,),
    "docs/scale.md": (None,),
    "docs/watch.md": (DEPLOY, "tests/app/end_to_end/test_watch_docs.py"),
    "docs/upgrade.md": (None, None, *(PAGE_TESTS,) * 5),
}
"""By page, for each of its blocks in their order: the tests that run it, or None where NOT_RUN says why not."""

NOT_RUN = {
    "make demo ": "installs from an index (tests/test_make.py); tests/deploy/test_wheel.py runs `casebank demo`",
    "make test ": "is what runs these tests",
    "pipx install .": "installs from an index; tests/deploy/test_wheel.py installs the wheel, and runs what follows",
    "pip install ./clients/python": "installs from an index, with httpx; the client's tests run it from its folder",
    "cd clients/typescript && npm ci": f"fetches from npm: `make test-clients` builds it ({TYPESCRIPT})",
    "pip install 'casebank[mcp]'": "installs from an index; the tests of MCP skip where the extra is not installed",
    "claude mcp add ": f"Claude Code is not here; {MCP} runs the command and asks the address that it is told",
    "casebank export --user U > U.jsonl": "needs an environment with an earlier commit",
    "casebank backfill A.jsonl": "needs that export; tests/writer/retain/test_backfill.py retains one",
    "PGOPTIONS=": "needs a Citus cluster and the pg_dump of its version; docs/scale.md says what was tried",
    "podman compose ": "there are no containers here; tests/deploy/test_deploy.py runs what the compose file starts",
    "systemctl enable ": f"systemd is not running here; {DEPLOY} starts what the units start",
}
"""By how a line of it begins: what is not run as it stands on its page, and why."""


def blocks_of(page: str) -> list[tuple[str, str]]:
    """Returns language and text of each block that is not a figure."""
    found = BLOCK.findall((ROOT / page).read_text())
    return [(language, text) for language, text in found if language != FIGURE]


def prose_of(page: str) -> list[str]:
    """Returns what stands as code between the words of a page."""
    prose = BLOCK.sub("", (ROOT / page).read_text())
    return [" ".join(each.split()) for each in re.findall(r"(?<!`)`([^`]+)`(?!`)", prose)]


def not_run(text: str) -> list[str]:
    return [start for start in NOT_RUN if any(line.startswith(start) for line in text.splitlines())]


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_a_page_is_run_by_a_test_or_listed_with_why_not(page: str):
    found, ledger = blocks_of(page), RUN_BY.get(page, ())
    assert len(found) == len(ledger), "a test of these pages must run the new block, and RUN_BY name the test"
    for (_, text), test in zip(found, ledger, strict=True):
        if test is None:
            assert not_run(text), text
        else:
            assert Path(page).name in (ROOT / test).read_text(), f"{test} does not read {page}"


def test_no_reason_outlives_what_it_excuses():
    excused = {start for page, tests in RUN_BY.items() for _, text in blocks_of(page) for start in not_run(text)}
    assert excused == NOT_RUN.keys()
    assert RUN_BY.keys() <= set(PAGES)


def test_pipx_injects_the_packages_of_the_extra():
    (packages,) = re.findall(r"^pipx inject casebank (.*?) +#", (ROOT / "docs" / "mcp.md").read_text(), re.MULTILINE)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert packages.split() == extras["mcp"]


@pytest.mark.parametrize("page", PAGES)
def test_bash_reads_every_block(page: str):
    for language, block in blocks_of(page):
        if language == "sh":
            subprocess.run(("/bin/bash", "-n", "-c", block), check=True)


def command_of(words: list[str]) -> tuple[Any, list[str]]:
    """Returns the command that the words call, and those that it is given."""
    command, rest = body_of(words[0]), words[1:]
    if words[0] == "train":  # which hands its words on
        training = typer.Typer(add_completion=False)
        training.command()(train)
        return get_command(training), rest
    while rest and rest[0] in getattr(command, "commands", {}):
        command, rest = command.commands[rest[0]], rest[1:]
    return command, rest


@pytest.mark.parametrize("page", PAGES)
def test_each_command_that_a_page_names_is_there_with_its_options(page: str):
    commands = [each.split()[1:] for each in prose_of(page) if each.startswith("casebank ")]
    for words in commands:
        if not words[0].isupper() and words[1:2] != ["…"]:  # words that stand for others
            assert words[0] in COMMANDS, words
            command, rest = command_of(words)
            options = {option for parameter in command.params for option in parameter.opts} | {"--help"}
            assert {word for word in rest if word.startswith("--")} <= options, words


def test_the_page_of_commands_names_every_command():
    rows = re.findall(r"^\| `casebank (\S+)`", (ROOT / "docs" / "commands.md").read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(COMMANDS)


@pytest.mark.parametrize(
    ("pages", "most"), [("README.md", 150), ("CHANGELOG.md", 65), ("docs/studies.md", 150), ("docs/decisions/*.md", 60)]
)
def test_a_page_that_is_to_be_read_at_once_stays_short(pages: str, most: int):
    long = [page.name for page in ROOT.glob(pages) if len(page.read_text().splitlines()) > most]
    assert long == []


@pytest.mark.parametrize("page", PAGES)
async def test_each_route_that_a_page_names_is_one_of_the_api(page: str, service: Service):
    paths = service.app.openapi()["paths"]
    for each in prose_of(page):
        if named := re.match(r"(?:(GET|POST|PUT|DELETE) )?(/v1/[^\s?]+)", each):
            like = re.compile(re.sub(r"\{.*?\}", r"[^/]+", named[2]))
            found = [methods for path, methods in paths.items() if like.fullmatch(path)]
            assert found, each
            assert any((named[1] or next(iter(methods))).lower() in methods for methods in found), each


@pytest.mark.parametrize("page", PAGES)
def test_each_file_and_heading_that_a_page_points_to_is_there(page: str):
    for target, heading in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", (ROOT / page).read_text()):
        file = (ROOT / page).parent / target if target else ROOT / page
        assert file.exists(), target
        if heading:
            assert heading in headings(file), f"{target}#{heading}"


@pytest.mark.parametrize("page", PAGES)
def test_each_test_that_a_page_names_is_there(page: str):
    for file, name in re.findall(r"`(tests/\S+\.py)::(\w+)`", (ROOT / page).read_text()):
        assert f"def {name}(" in (ROOT / file).read_text(), f"{file}::{name}"
    for file, name in re.findall(r'`(clients/\S+\.ts)`, "([^"]+)"', (ROOT / page).read_text()):
        assert f'test("{name}"' in (ROOT / file).read_text(), f"{file}: {name}"


def test_each_framework_was_tried_in_the_version_that_its_tests_install():
    installed = set((ROOT / "constraints-frameworks.txt").read_text().split())
    said = re.findall(r"tried with ([^):]*)", (ROOT / "clients" / "python" / "README.md").read_text())
    tried = [f"{name}=={version}" for each in said for name, version in re.findall(r"(\S+) (\d[\d.]*\d)", each)]
    assert len(tried) >= len(said) == 5
    assert set(tried) <= installed


def headings(file: Path) -> set[str]:
    found = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in found}
