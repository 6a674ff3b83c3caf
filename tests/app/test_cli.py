"""The commands: what they print, what they refuse, and an expected error as one line."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import click
import pytest
from sqlalchemy.engine import make_url
from typer.core import TyperOption
from typer.testing import CliRunner, Result

from app import __version__
from app.auth.keys import SharedSecret
from app.auth.tokens import ACT_AS, TokenVerifier
from app.cli import COMMANDS, body_of, cli
from app.postgres import EmbeddedPostgres
from app.settings import Settings
from app.terminal.which_database import database_of, read_environment
from tests.app.doctor.conftest import as_owner
from tests.conftest import new_database
from tests.paths import ROOT
from tests.plain_words import ATTRIBUTE
from tests.processes import CASEBANK, surroundings

NOWHERE = "postgresql://127.0.0.1:1/nowhere"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CASEBANK_HOME", str(tmp_path))
    monkeypatch.delenv("DATABASE_URL", raising=False)
    return tmp_path


def casebank(*words: str, given: str = "") -> Result:
    return CliRunner().invoke(cli, words, input=given)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_about_a_command_in_the_list_of_all_is_the_first_of_its_own_help(name: str):
    assert body_of(name).help.split("\n\n")[0].replace("\n", " ") == COMMANDS[name].line


def test_the_version_is_that_of_the_installed_package():
    printed = casebank("--version")
    assert (printed.exit_code, printed.stdout) == (0, f"casebank {version('casebank')}\n")
    assert __version__ == version("casebank")


def helps(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    """Yields the help of the command, of its options, and of the commands in its group, each with its place."""
    yield name, command.help or ""
    for option in command.params:
        if isinstance(option, TyperOption) and option.name != "help":
            yield f"{name} {option.opts[0]}", option.help or ""
    for below in getattr(command, "commands", {}).values():
        yield from helps(below, f"{name} {below.name}")


HELPS = dict(each for name in COMMANDS for each in helps(body_of(name), name))


@pytest.mark.parametrize("place", HELPS)
def test_every_help_says_what_it_is_and_begins_with_no_clause(place: str):
    assert HELPS[place]
    assert not ATTRIBUTE.match(HELPS[place])


def test_the_list_of_all_commands_imports_none_of_them():
    listing = "from app.cli import cli; import sys; cli(['--help'], standalone_mode=False); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", listing], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "  rotate-key  " in done.stdout.replace("│", " ")
    imported = set(done.stdout.splitlines()[-1].split())
    assert "app.cli" in imported
    assert not imported & {command.module for command in COMMANDS.values()}
    assert not imported & {"sqlalchemy", "fastapi", "numpy"}


def test_a_service_imports_what_migrates_only_where_it_migrates():
    service = "import app.commands.serve, app.main, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", service], cwd=ROOT, capture_output=True, text=True, check=True)
    imported = set(done.stdout.split())
    assert "app.runtime" in imported
    assert not imported & {"alembic", "mako"}


async def test_a_token_is_signed_with_the_secret_of_the_home_and_says_what_it_may(home: Path):
    verifier = TokenVerifier(SharedSecret(Settings(home=home).signing_secret), "casebank", "casebank")
    plain, service = (casebank("token", "--user", "alice", *more).stdout.strip() for more in ((), ("--service",)))
    identity = await verifier.identify(f"Bearer {plain}", None)
    assert (identity.user_sub, identity.actor) == ("alice", "alice")
    assert identity.authorised_at <= datetime.now(UTC)
    assert (await verifier.identify(f"Bearer {service}", "bob")).user_sub == "bob"
    assert ACT_AS not in plain


def test_no_token_is_made_where_an_identity_provider_makes_them(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CASEBANK_JWKS_URL", "https://issuer.example/jwks.json")
    refused = casebank("token", "--user", "alice")
    assert refused.exit_code == 2
    assert "CASEBANK_JWKS_URL is set" in refused.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("token", "--user", ""),
        ("purge", "--yes", "--user", "a\nb"),
        ("policy", "show", "--user", "alice"),
        ("backfill", "no-such-file", "--user", "alice", "--agent", "a"),
        ("worker", "--metrics-port", "65536"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_done(home: Path, words: tuple[str, ...]):
    assert casebank(*words).exit_code == 2
    assert not (home / "postgres").exists()


def test_a_port_that_is_taken_is_said_before_anything_is_started(home: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = casebank("serve", "--port", str(taken.getsockname()[1]))
    assert (result.exit_code, list(home.iterdir())) == (1, [])
    assert "Address already in use; --port and --host take others" in result.output


def test_an_error_that_casebank_expects_is_one_line(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DATABASE_URL", NOWHERE)
    failed = casebank("migrate")
    assert failed.exit_code == 1
    assert failed.stderr.startswith("casebank: ")
    assert "Traceback" not in failed.output


@pytest.mark.parametrize("words", [("token", "--user", "alice"), ("token", "--help")])
def test_an_output_that_takes_no_more_is_one_line(home: Path, words: tuple[str, ...]):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            (CASEBANK, *words), stdout=full, stderr=subprocess.PIPE, env=surroundings(home), text=True, check=False
        )
    assert (done.returncode, done.stderr) == (1, "casebank: [Errno 28] No space left on device\n")


def test_a_reader_that_goes_away_amid_an_export_ends_it_in_silence(postgres: EmbeddedPostgres, home: Path):
    database_url = asyncio.run(new_database(postgres))  # its own: other tests prune every profile of theirs
    insert = "INSERT INTO profiles (user_sub, agent_key) SELECT 'ada', 'a' || n FROM generate_series(1, 500) n"
    asyncio.run(as_owner(database_url, insert))
    environment = surroundings(home, DATABASE_URL=database_url, CASEBANK_MASTER_KEY="5" * 64)
    export = (CASEBANK, "export", "--user", "ada")
    with subprocess.Popen(export, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b'{"type": ')
        process.stdout.close()
        process.stdout = None
        assert process.communicate()[1] == b""


@pytest.mark.parametrize("command", ["prune", "requeue --user alice", "worker --metrics-port 0", "export --user alice"])
@pytest.mark.parametrize("wrong", ["login", "database"])
async def test_a_wrong_login_and_a_wrong_database_are_one_line_that_says_so(
    command: str, wrong: str, home: Path, postgres: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
):
    url = postgres.url("postgres", "nobody_of_that_name") if wrong == "login" else postgres.url("nowhere")
    monkeypatch.setenv("DATABASE_URL", url)
    monkeypatch.setenv("CASEBANK_MASTER_KEY", "5" * 64)
    failed = await asyncio.to_thread(casebank, *command.split())
    assert failed.exit_code == 1
    assert "Traceback" not in failed.output
    said = [line for line in failed.stderr.splitlines() if line.startswith("casebank: ")]
    said = [line for line in said if not line.startswith("casebank: database: ")]  # which one it uses
    assert len(said) == 1
    assert ("refuses the login" if wrong == "login" else "no such database") in said[0]


def test_a_user_is_not_erased_without_being_asked(database_url: str, home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("CASEBANK_MASTER_KEY", "5" * 64)
    asked = casebank("purge", "--user", "alice", given="n\n")
    assert asked.exit_code == 1
    assert "cannot be undone" in asked.output
    assert "casebank: database: " in asked.stderr  # whoever is asked knows of which


@pytest.mark.parametrize(
    ("words", "question"),
    [("purge --user cleo --json", "cannot be undone"), ("rotate-key --json", "hold both keys")],
)
def test_a_question_does_not_stand_in_an_output_for_machines(
    words: str, question: str, database_url: str, home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("CASEBANK_MASTER_KEY", "5" * 64)
    done = casebank(*words.split(), given="y\n")
    assert (question in done.stderr, question in done.stdout) == (True, False)


def test_the_commands_do_their_work_on_the_bank_of_the_settings(
    database_url: str, home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("CASEBANK_MASTER_KEY", "5" * 64)
    assert casebank("doctor").exit_code == 0  # while no case waits, which on a busy machine may be long
    findings = {finding["name"]: finding for finding in json.loads(casebank("doctor", "--json").stdout)}
    assert (findings["schema"]["ok"], findings["pgvector"]["ok"]) == (True, True)
    assert findings["schema"].keys() == {"name", "ok", "detail", "advice"}
    runs = home / "runs.jsonl"
    runs.write_text('{"agent": "a", "task": "water the plants", "outcome": "success"}\n{"no": "run"}\n')
    filled = casebank("backfill", str(runs), "--user", "alice", "--agent", "a")
    assert filled.exit_code == 1  # for the line that is none
    assert "1 retained, 0 known already, 1 refused" in filled.stdout
    types = [json.loads(line)["type"] for line in casebank("export", "--user", "alice").stdout.splitlines()]
    assert types.count("cases") == 1
    misspelt = casebank("export", "--user", "alcie")
    assert (misspelt.stdout, misspelt.stderr) == ("", "casebank: this user has no rows: is the name right?\n")
    assert "cases pruned from their banks: 0; deleted for good: 0" in casebank("prune").stdout
    assert "0 cases queued again" in casebank("requeue").stdout
    assert "0 cases embedded" in casebank("reembed").stdout
    shown = casebank("policy", "show", "--user", "alice", "--agent", "a")
    none, compared, policies = shown.stdout.splitlines()
    assert none == "no replay yet: it needs a finished case"
    off = "learning or its trials are off (`learning` and `canary` of the profile)"
    assert policies == f"no trained policy, and none is trained: {off}; the order that replay chose serves"
    assert compared.startswith("In the last half year, 0 runs had a case and 0 runs had none.")
    unknown = casebank("policy", "show", "--user", "alice", "--agent", "b")
    assert (unknown.exit_code, unknown.stderr) == (1, "casebank: no such profile: the agents of this user are a\n")
    changed = casebank("impact", "--user", "alice", "--agent", "a")
    assert changed.exit_code == 0
    assert changed.stdout.startswith("0 rewarded of the newest 0 decisions that had candidates (at most 10,000)\n")
    assert "beside an empty slate: cannot say yet: no realistic number of decisions would tell" in changed.stdout
    as_json = json.loads(casebank("impact", "--user", "alice", "--agent", "a", "--json").stdout)
    assert (as_json["agent"], as_json["differences"][0]["more"]) == ("a", None)
    assert casebank("impact", "--user", "alice", "--agent", "b").exit_code == 1
    nothing_serves = casebank("policy", "rollback", "--user", "alice", "--agent", "a")
    assert (nothing_serves.exit_code, nothing_serves.stderr[:10]) == (1, "casebank: ")
    receipt = json.loads(casebank("purge", "--user", "alice", "--yes", "--json").stdout)
    assert (receipt["rows"]["cases"], receipt["clean"]) == (1, True)


def test_a_requeue_tells_of_the_lessons_that_it_queued(database_url: str, home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("CASEBANK_MASTER_KEY", "5" * 64)
    runs = home / "runs.jsonl"
    runs.write_text('{"agent": "a", "task": "water the plants", "outcome": "success"}\n')
    casebank("backfill", str(runs), "--user", "bob", "--agent", "a")
    dead = "SELECT user_sub, id, agent_key, 'dead' FROM cases WHERE user_sub = 'bob'"
    asyncio.run(as_owner(database_url, f"INSERT INTO reflections (user_sub, id, agent_key, status) {dead}"))
    requeued = casebank("requeue", "--user", "bob")
    assert requeued.stdout == "0 cases queued again, lessons of 1\n"
    doubt = "this user has no rows: is the name right?"
    assert (doubt in requeued.stderr, doubt in casebank("requeue", "--user", "bbo").stderr) == (False, True)


@pytest.mark.parametrize(
    "line",
    ["DATABASE_URL={}", "\ufeffDATABASE_URL={}", "export DATABASE_URL='{}'", '# a comment\n\nDATABASE_URL="{}"\n'],
)
@pytest.mark.parametrize("word", ["option", "variable"])
def test_a_command_uses_the_database_of_the_file_it_is_pointed_to_and_says_so(
    database_url: str, home: Path, monkeypatch: pytest.MonkeyPatch, line: str, word: str
):
    file = home / "environment"
    file.write_text(line.format(database_url) + "\nCASEBANK_MASTER_KEY=" + "5" * 64)
    for name in ("DATABASE_URL", "CASEBANK_MASTER_KEY"):  # to be taken back after the test
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    if word == "variable":
        monkeypatch.setenv("CASEBANK_ENV_FILE", str(file))
    done = casebank(*(["--env-file", str(file)] if word == "option" else []), "prune")
    assert done.exit_code == 0, done.output
    assert f"casebank: database: {make_url(database_url).database} at " in done.stderr
    assert not (home / "postgres").exists()


@pytest.mark.parametrize("line", [b"A=\xff", b"=secret", b"A=sec\0ret"])
def test_a_file_of_settings_that_cannot_be_read_is_refused_without_a_traceback(tmp_path: Path, line: bytes):
    file = tmp_path / "environment"
    file.write_bytes(line)
    done = casebank("--env-file", str(file), "migrate")
    assert (done.exit_code, "NAME=value" in done.stderr, "secret" in done.stderr) == (2, True, False)


@pytest.mark.parametrize("words", ["mcp", "policy show", "knowledge list", "backfill {}", "impact"])
@pytest.mark.parametrize("agent", ["", "a\tb", "a" * 201])
def test_an_agent_that_cannot_be_is_refused_before_anything_is_done(tmp_path: Path, words: str, agent: str):
    (runs := tmp_path / "runs.jsonl").touch()
    done = casebank(*words.format(runs).split(), "--user", "alice", "--agent", agent)
    assert (done.exit_code, "1 to 200 printable" in done.stderr) == (2, True)


WRITING = {
    "prune": "",
    "purge": "--user alice --yes",
    "rotate-key": "--yes",
    "restore": "no-backup",
    "erase-again": "no-receipt",
    "migrate": "",
    "train": "",
    "backfill": "runs.jsonl --user alice --agent a",
    "reembed": "",
    "reseal": "",
    "requeue": "",
    "demo": "",
    "policy": "rollback --user alice --agent a",
    "audit": "prune --keep-days 1 --all",
    "token": "revoke --user alice",
    "knowledge": "delete 00000000-0000-0000-0000-000000000000 --user alice --agent a",
    "mcp": "--user alice --agent a",
}
"""The commands that write, and with what words; ``serve`` and ``worker`` say their database as they start."""
READING = {"serve", "worker", "console", "backup", "export", "doctor", "impact"}


def test_each_command_is_known_as_one_that_writes_or_reads():
    assert WRITING.keys() | READING == COMMANDS.keys()


@pytest.mark.parametrize("name", WRITING)
def test_a_command_that_writes_says_which_database_it_uses(name: str, home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DATABASE_URL", NOWHERE)
    monkeypatch.chdir(home)
    Path("runs.jsonl").write_text("")
    done = casebank(name, *WRITING[name].split())
    assert done.exit_code == 1, done.output
    assert done.stderr.startswith("casebank: database: nowhere at 127.0.0.1:1 (DATABASE_URL)\n"), done.stderr


def test_a_variable_of_the_environment_counts_more_than_the_file(home: Path, monkeypatch: pytest.MonkeyPatch):
    file = home / "environment"
    file.write_text(f"DATABASE_URL={NOWHERE}")
    monkeypatch.setenv("DATABASE_URL", "of the environment")
    read_environment(file)
    assert os.environ["DATABASE_URL"] == "of the environment"


def test_a_database_is_told_without_its_password(home: Path, monkeypatch: pytest.MonkeyPatch):
    assert database_of(Settings()) == f"embedded, in {home} (DATABASE_URL is not set)"
    monkeypatch.setenv("DATABASE_URL", "postgresql://ada:hunter2@db.example:5433/bank")
    assert database_of(Settings()) == "bank at db.example:5433 (DATABASE_URL)"
    for password in ("hunter@2", "hunter@2:x", "hunter/2", "hunter?2"):
        monkeypatch.setenv("DATABASE_URL", f"postgresql://ada:{password}@db.example:5433/bank")
        assert database_of(Settings()) == "bank at db.example:5433 (DATABASE_URL)"


def test_several_hosts_and_a_socket_are_told_as_the_url_names_them(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://ada@one:5432,two:5433/the%20bank?target_session_attrs=primary")
    assert database_of(Settings()) == "the bank at one:5432,two:5433 (DATABASE_URL)"
    monkeypatch.setenv("DATABASE_URL", "postgresql://ada@/bank?host=/run/postgresql")
    assert database_of(Settings()) == "bank at this machine (DATABASE_URL)"


@pytest.mark.parametrize("url", ["", "mysql://ada:hunter2@db.example/bank"])
@pytest.mark.parametrize("words", ["serve --port 0", "migrate", "prune"])
def test_an_address_of_no_postgres_is_refused_in_one_line(url: str, words: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DATABASE_URL", url)
    monkeypatch.setenv("CASEBANK_MASTER_KEY", "5" * 64)
    done = casebank(*words.split())
    assert (done.exit_code, done.stderr) == (1, "casebank: DATABASE_URL must begin with postgresql://\n"), done.output
