"""``casebank knowledge``: kept for a user or for all of an agent, found by recall, and writable by nobody else."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from typer.testing import CliRunner, Result

from app.cli import cli
from app.postgres import EmbeddedPostgres
from app.postgres.pools import dsn
from tests.service import Service, User
from writer.rights.erase import erase
from writer.rights.export import export

RATE = "The overnight rate is 2.1 percent."
SECRET = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"


@pytest.fixture
def agent(service: Service, monkeypatch: pytest.MonkeyPatch) -> str:
    """An agent of its own, and the settings of the service for every command."""
    monkeypatch.setenv("CASEBANK_HOME", str(service.settings.home))
    monkeypatch.setenv("DATABASE_URL", str(service.settings.database_url))
    monkeypatch.setenv("CASEBANK_MASTER_KEY", service.settings.master_key_bytes.hex())
    return f"bank {uuid4()}"


LOG_LINE = re.compile(rb"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \[.*\n", re.MULTILINE)
"""A line of the service's log: it runs in the same process, and writes where the command writes."""


async def casebank(*words: str, given: str = "") -> Result:
    done = await asyncio.to_thread(CliRunner().invoke, cli, ["knowledge", *words], given, {"COLUMNS": "300"})
    done.stdout_bytes = LOG_LINE.sub(b"", done.stdout_bytes)
    return done


async def imported(folder: Path, agent: str, text: str, *whose: str, name: str = "a.md") -> Result:
    (path := folder / name).write_text(text)
    return await casebank("import", str(path), "--agent", agent, *(whose or ("--shared",)))


async def listed(agent: str, *whose: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (await casebank("list", "--agent", agent, *whose)).stdout.splitlines()]


async def recalled(user: User, agent: str, query: str = "overnight rate") -> list[dict[str, Any]]:
    answer = await user.http.post("/v1/recall", json={"agent": agent, "query": query})
    assert answer.status_code == 200, answer.text
    return answer.json()["memories"]


async def test_shared_knowledge_is_recalled_by_every_user_of_the_agent_and_of_no_other(
    alice: User, bob: User, agent: str, tmp_path: Path
):
    done = await imported(tmp_path, agent, f"# Savings\n## Rate\n{RATE}\n")
    assert (done.exit_code, done.stdout) == (0, "1 entries kept\n"), done.output
    for user in (alice, bob):
        (found,) = await recalled(user, agent)
        assert found["text"] == f"Rate\n{RATE}"
        assert (found["source"]["category"], found["source"]["shared"]) == ("Savings", True)
        assert found["similarity"] is not None
    assert await recalled(alice, "another") == []


async def test_a_users_first_retrieve_is_told_shared_knowledge_and_nothing_where_memory_is_off(
    alice: User, agent: str, tmp_path: Path
):
    await imported(tmp_path, agent, f"# Savings\n## Rate\n{RATE}\n")
    asked = {"agent": agent, "query": "What is the overnight rate?", "recall": True}
    first = (await alice.http.post("/v1/retrieve", json=asked)).json()
    assert RATE in first["memory_context"]
    await alice.http.put(f"/v1/profiles/{agent}", json={"enabled": False})
    off = (await alice.http.post("/v1/retrieve", json=asked)).json()
    assert (off["recalled"], off["memory_context"]) == (None, "")
    assert await recalled(alice, agent) == []


async def test_a_users_own_and_shared_entries_are_ranked_together(alice: User, agent: str, tmp_path: Path):
    await imported(
        tmp_path, agent, "".join(f"# Money\n## Rate {n}\nThe rate of tariff {n} is low.\n" for n in range(5))
    )
    await imported(tmp_path, agent, "# Money\n## Mine\nThe marimba has a rate.\n", "--user", alice.name)
    found = await recalled(alice, agent, "rate marimba")
    assert [each["source"]["shared"] for each in found] == [False, *[True] * 5]
    lone = await recalled(alice, agent, "marimba")
    assert lone[0]["text"] == found[0]["text"]


async def test_nothing_is_imported_by_halves_and_the_bad_line_is_named(alice: User, agent: str, tmp_path: Path):
    lines = '{"category": "m", "text": "good"}\n{"category": "m"}\n'
    for whose in (("--shared",), ("--user", alice.name)):
        refused = await imported(tmp_path, agent, lines, *whose, name="a.jsonl")
        assert refused.exit_code == 1
        assert "line 2" in refused.stderr
        assert await listed(agent, *whose) == []


async def test_who_imports_again_updates_and_an_unchanged_file_changes_nothing(alice: User, agent: str, tmp_path: Path):
    for whose in (("--shared",), ("--user", alice.name)):
        await imported(tmp_path, agent, f"# Savings\n## Rate\n{RATE}\n", *whose)
        (before,) = await listed(agent, *whose)
        await imported(tmp_path, agent, "# Savings\n## RATE\nIt is 1.9 percent.\n", *whose)
        (after,) = await listed(agent, *whose)
        assert (after["id"], after["text"]) == (before["id"], "It is 1.9 percent.")
    assert [each["text"] for each in await recalled(alice, agent, "1.9 percent")] == ["RATE\nIt is 1.9 percent."] * 2
    assert await recalled(alice, agent, "overnight") == []


async def test_edit_and_delete_reach_the_entry_of_whom_they_name(alice: User, agent: str, tmp_path: Path):
    for whose in (("--shared",), ("--user", alice.name)):
        await imported(tmp_path, agent, f"# Savings\n## Rate\n{RATE}\n# Savings\n## Fee\nNone.\n", *whose)
        fee, rate = await listed(agent, *whose)
        said = ("--agent", agent, "--category", "Savings", "--title", "Rate", "--text", "-")
        done = await casebank("edit", rate["id"], *said, *whose, given="It is 3 percent.\n")
        assert done.exit_code == 0, done.output
        assert [each["text"] for each in await listed(agent, *whose)] == ["None.", "It is 3 percent."]
        taken = await casebank("edit", fee["id"], *said, *whose, given="It is 3 percent.\n")
        assert (taken.exit_code, "another entry" in taken.stderr) == (1, True)
        nobodys = await casebank("edit", str(uuid4()), *said[:5], "Other", *said[6:], *whose, given="x")
        assert (nobodys.exit_code, "no such" in nobodys.stderr) == (1, True)
        assert (await casebank("delete", rate["id"], "--agent", "another", *whose)).exit_code == 1
        assert (await casebank("delete", rate["id"], "--agent", agent, *whose)).exit_code == 0
        assert [each["id"] for each in await listed(agent, *whose)] == [fee["id"]]


async def test_no_route_of_a_user_reaches_a_shared_entry(alice: User, agent: str, tmp_path: Path):
    await imported(tmp_path, agent, f"# Savings\n## Rate\n{RATE}\n")
    (entry,) = await listed(agent, "--shared")
    body = {"agent": agent, "category": "Savings", "title": "Rate", "text": "forged"}
    path = f"/v1/knowledge/{entry['id']}"
    assert (await alice.http.put(path, json=body)).status_code == 404
    assert (await alice.http.delete(path)).status_code == 404
    assert (await alice.http.post("/v1/knowledge", json={**body, "type": "fact"})).status_code == 201
    assert [each["text"] for each in await listed(agent, "--shared")] == [RATE]


async def test_it_is_in_nobodys_export_and_outlives_a_purge_of_anybody(
    alice: User, bob: User, service: Service, agent: str, tmp_path: Path
):
    await imported(tmp_path, agent, f"# Savings\n## Rate\n{RATE}\n")
    assert len(await recalled(alice, agent)) == 1
    rows = [row async for row in export(service.runtime.database, service.runtime.keyring, alice.name)]
    assert RATE not in json.dumps(rows, default=str)
    assert (await erase(service.runtime.database, alice.name)).clean
    assert len(await recalled(bob, agent)) == 1


async def test_the_operators_audit_says_what_was_done_and_secrets_are_taken_out(
    service: Service, agent: str, tmp_path: Path
):
    await imported(tmp_path, agent, f"# Savings\n## Key\nIt is {SECRET}.\n")
    (entry,) = await listed(agent, "--shared")
    assert SECRET not in entry["text"]
    await casebank("delete", entry["id"], "--agent", agent, "--shared")
    operator = await service.user("operator")
    noted = (await operator.http.get("/v1/audit", params={"agent": agent})).json()["entries"]
    actions = [each["action"] for each in noted if each["subject_id"] == entry["id"]]
    assert sorted(actions) == ["delete_shared_knowledge", "insert_shared_knowledge"]


async def test_a_login_that_does_not_own_the_tables_is_told_so(
    postgres: EmbeddedPostgres, service: Service, agent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    url = dsn(str(service.settings.database_url))
    owner, login = await asyncpg.connect(url), f"plain_{uuid4().hex}"
    await owner.execute(f"CREATE ROLE {login} LOGIN; GRANT casebank_service, casebank_worker TO {login}")
    name = await owner.fetchval("SELECT current_database()")
    await owner.close()
    monkeypatch.setenv("DATABASE_URL", postgres.url(name, login))
    refused = await imported(tmp_path, agent, f"# Savings\n## Rate\n{RATE}\n")
    assert refused.exit_code == 1, refused.output
    assert "owner" in refused.stderr
    assert "Traceback" not in refused.output


@pytest.mark.parametrize("whose", [(), ("--shared", "--user", "alice")])
async def test_whose_it_is_must_be_said(whose: tuple[str, ...], agent: str):
    assert (await casebank("list", "--agent", agent, *whose)).exit_code == 2
