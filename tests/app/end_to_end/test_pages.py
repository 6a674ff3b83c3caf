"""Every command and program of the README's first call and of these pages does what they say."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import httpx
import pytest
from alembic.script import ScriptDirectory

from app import postgres
from app.postgres.migrate import configuration
from app.postgres.pools import dsn
from tests.pages import blocks, python, shell
from tests.paths import ROOT
from tests.processes import Service, casebank, migrated_home, new_home, retain, until
from tests.service import Service as InProcess

README = (ROOT / "README.md").read_text()
IDEAS = (ROOT / "docs" / "ideas.md").read_text()


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with migrated_home() as home:
        yield home


def test_five_minutes_by_python_and_by_fetch_end_in_a_case_each(home: Path):
    serve, token, look = blocks("five-minutes.md", "sh")
    (client,), (fetch,) = blocks("five-minutes.md", "python"), blocks("five-minutes.md", "js")
    assert serve == "casebank serve\n"  # which is what is started here, on another port
    with Service(home) as service:
        given = {"TOKEN": shell(home, f"{token}echo $TOKEN").strip()}
        python(home, client, service.url, **given)
        tasks = {"Rename the column price to amount"}
        if shutil.which("node"):
            shell(home, f"node --input-type=module - <<'END'\n{fetch}END", service.url, **given)
            tasks.add("Rename the column name to title")
        until(lambda: {each["task"] for each in json.loads(shell(home, look, service.url, **given))["cases"]} == tasks)


def test_the_readmes_loop_leaves_a_case_and_the_next_task_gets_the_text_it_shows(home: Path):
    (loop,) = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    (text,) = re.findall(r"^```\n(<casebank_memory>.*?)^```", README, re.DOTALL | re.MULTILINE)
    (query,) = re.findall(r"similar task, `([^`]+)`", README)
    with Service(home) as service:
        token = shell(home, "casebank token --user readme").strip()
        python(home, loop, service.url, TOKEN=token)
        with httpx.Client(base_url=service.url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
            learned = {"lessons": "ready", "status": "ready"}
            until(lambda: [case for case in client.get("/v1/cases").json()["cases"] if learned.items() <= case.items()])
            answer = client.post("/v1/retrieve", json={"agent": "db-operator", "query": query})
        assert answer.json()["memory_context"] == text.rstrip()


def test_impact_the_console_and_execution_memory_as_their_pages_have_them(home: Path):
    serve, open_it = blocks("console.md", "sh")[0].splitlines()
    (impact,), (steps, _, kinds) = blocks("impact.md", "sh"), blocks("execution-memory.md", "sh")
    assert serve.startswith("casebank serve ")
    with Service(home) as service, service.client("alice") as client:
        retain(client, "water the garden", agent="db-operator")
        here = {"localhost:8700": service.url.removeprefix("http://"), ".venv/bin/": ""}
        given = {"TOKEN": shell(home, "casebank token --user alice").strip()}
        assert "cannot say yet" in shell(home, _here(impact, here), **given)
        opened = shell(home, open_it.replace("--user", f"--at {service.url} --user"), BROWSER="true")
        page = httpx.get(opened.strip(), follow_redirects=True, timeout=60)
        assert page.status_code == 200
        assert "Sign in" in page.text
        assert "RETRIES" in shell(home, _here(steps, here), **given)
        assert "find_symbol" in shell(home, _here(kinds, here), **given)


def _here(commands: str, names: dict[str, str]) -> str:
    for name, here in names.items():
        commands = commands.replace(name, here)
    return commands


def _answers(home: Path, command: str, given: dict[str, str]) -> dict[str, str]:
    told: dict[str, str] = json.loads(shell(home, f'{command} -H "Authorization: Bearer $TOKEN"', **given))
    return told


async def kept(home: Path) -> tuple[str, int]:
    """Returns the revision of the bank's schema, and how many cases are in it."""
    with postgres.running(home) as server:  # only meanwhile: a restore wants to be alone
        connection = await asyncpg.connect(dsn(server.url()))
        try:
            revision = await connection.fetchval("SELECT version_num FROM alembic_version")
            return revision, await connection.fetchval("SELECT count(*) FROM cases")
        finally:
            await connection.close()


@pytest.mark.timeout(600)
async def test_an_upgrade_of_the_embedded_database_there_and_back(tmp_path: Path):
    save, well, migrate, restore, down = blocks("upgrade.md", "sh")
    newest = ScriptDirectory.from_config(configuration()).get_revision("head")
    before, given = str(newest.down_revision or newest.revision), {"BACKUP": str(tmp_path)}
    with new_home() as home:
        casebank(home, "migrate", before)
        shell(home, save, **given)
        with Service(home) as service, service.client("alice") as client:
            retain(client, "water the garden")
            shell(home, well + migrate, service.url)
        assert await kept(home) == (newest.revision, 1)
        shell(home, down, **given)
        assert await kept(home) == (before, 1)
        shell(home, restore, **given)
        assert await kept(home) == (newest.revision, 0)
        shell(home, down, **given)
        assert await kept(home) == (before, 0)


@pytest.mark.timeout(600)
def test_the_experiment_of_its_page_says_what_it_predicts_and_finds_and_keeps_it(tmp_path: Path):
    (command,) = blocks("experiment.md", "sh")
    command = _here(command, {"--practice 4": "--practice 1", "--test 3": "--test 1"})  # what it finds is not looked at
    with migrated_home() as home:
        said = shell(home, command, folder=tmp_path, PYTHONPATH=str(ROOT))
    assert said.index("predicted before the run") < said.index("out/experiment-office.json")
    found = json.loads((tmp_path / "out" / "experiment-office.json").read_text())
    assert found["predictions"]


async def test_each_field_of_the_ideas_is_one_of_the_api(service: InProcess):
    document = service.app.openapi()
    answer, case = (document["components"]["schemas"][name]["properties"] for name in ("RetrieveOut", "SlotOut"))
    table = IDEAS[IDEAS.index("| in the answer") :]
    fields = re.findall(r"`(\w+)`", table)
    assert len(fields) > 8
    assert set(fields) <= answer.keys() | case.keys()
