"""A setting that cannot be is a line that names it, whatever the command; and nothing was started."""

import traceback
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from app.cli import cli
from app.doctor.machine import tokens
from app.settings import Limits, Settings
from app.wrong_settings import WrongSettings
from tests.processes import ran

LONG = "0123456789abcdef" * 4
NOWHERE = "postgresql://127.0.0.1:1/nowhere"
ADDRESS = "must be an address that begins with http:// or https://"
PAGES = "addresses like https://chat.example.org with spaces between them"
WRONG = [
    ("CASEBANK_POOL_SIZE", "abc", "must be a whole number"),
    ("CASEBANK_POOL_SIZE", "0", "must be greater than or equal to 1"),
    ("CASEBANK_EMBEDDER", "foo", "must be 'wordllama' or 'openai'"),
    ("CASEBANK_SEAL", "everything", "must be 'payload' or 'all'"),
    ("CASEBANK_EXPLORE", "perhaps", "must be true or false"),
    ("CASEBANK_LOG_LEVEL", "loud", "must be 'debug', 'info', 'warning' or 'error'"),
    ("CASEBANK_TIMEOUTS_S", "turn=61", "turn must be less than or equal to 60"),
    ("CASEBANK_TIMEOUTS_S", "stop=5,turn=long", "turn must be a number"),
    ("CASEBANK_LIMITS", "user_reads=-5", "user_reads must be greater than or equal to 0"),
    ("CASEBANK_LIMITS", "perhaps", f"must be like user_reads=1, with names of {', '.join(Limits.model_fields)}"),
    ("CASEBANK_CONNECTIONS", "500", "must be like total=1, with names of total, per_address"),
    ("CASEBANK_WORKER_PACE", "lease=3", "must be like poll_s=1, with names of poll_s, lease_s, attempts, backoff_s"),
    ("CASEBANK_JWT_SECRET", "short", "needs 32 bytes at least"),
    ("CASEBANK_JWKS_URL", "nonsense", ADDRESS),
    ("CASEBANK_JWKS_URL", "ftp://127.0.0.1/keys", ADDRESS),
    ("CASEBANK_JWKS_URL", "file:///etc/passwd", ADDRESS),
    ("CASEBANK_JWKS_URL", "http://[::1", ADDRESS),
    ("CASEBANK_CONSOLE", "nonsense", "loopback, off, or addresses like https://memory.example.org"),
    ("CASEBANK_CONSOLE", "http://[::1", "loopback, off, or addresses like https://memory.example.org"),
    (
        "CASEBANK_CONSOLE",
        "https://memory.example.org:443",
        "loopback, off, or addresses like https://memory.example.org",
    ),
    ("CASEBANK_CONSOLE", "http://memory.example.org:80", "loopback, off, or addresses like https://memory.example.org"),
    ("CASEBANK_HOME", "~nobody-here/x", "begins with ~, and this machine does not know that user's folder"),
    ("CASEBANK_MCP_AGENT", "", "must have at least 1 character"),
    ("CASEBANK_MCP_ORIGINS", "chat.example.org", PAGES),
    ("CASEBANK_MCP_ORIGINS", "https://chat.example.org/", PAGES),
    ("CASEBANK_MCP_ORIGINS", "https://a.example.org, https://b.example.org", PAGES),
    ("CASEBANK_PUBLIC_URL", "memory.example.com", ADDRESS),
    ("CASEBANK_OPENAI_BASE_URL", "api.example.com/v1", ADDRESS),
    ("CASEBANK_LLM_BASE_URL", "", ADDRESS),
    ("CASEBANK_TIMEOUTS_S", "database=inf", "database must be less than or equal to 86400"),
    ("CASEBANK_IDLE_S", "inf", "must be less than or equal to 3155760000"),
    ("CASEBANK_WORKER_PACE", "poll_s=inf", "poll_s must be less than or equal to 3155760000"),
    ("CASEBANK_OPERATOR_FROM", "nonsense", "networks like 10.0.0.0/8 with spaces between them"),
    ("CASEBANK_PRUNED_KEPT_DAYS", "1000000", "must be less than or equal to 36525"),
    ("CASEBANK_RUN_SILENT_S", "1e12", "must be less than or equal to 3155760000"),
    ("CASEBANK_UPKEEP_EVERY_S", "inf", "must be less than or equal to 3155760000"),
    ("CASEBANK_TRAIN_EVERY_S", "inf", "must be less than or equal to 3155760000"),
    ("CASEBANK_WORKER_PACE", "lease_s=inf", "lease_s must be less than or equal to 3155760000"),
    (
        "CASEBANK_FIRST_ORDER",
        "word",
        "must be 'words', 'rare', 'meaning', 'fused', 'telling', 'mixture', 'vote' or 'outcomes'",
    ),
]
COMMANDS = [
    "serve --port 0",
    "worker --metrics-port 0",
    "migrate",
    "doctor",
    "token --user ada",
    "token rotate-secret",
    "console --user ada",
    "prune",
    "purge --user ada --yes",
    "erase-again receipts",
]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CASEBANK_HOME", str(tmp_path))
    monkeypatch.setenv("DATABASE_URL", NOWHERE)
    return tmp_path


def casebank(words: str) -> Result:
    return CliRunner().invoke(cli, words.split())


@pytest.mark.parametrize(("name", "value", "said"), WRONG)
def test_what_is_wrong_is_one_line_with_the_name_that_the_operator_typed(
    home: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
):
    monkeypatch.setenv(name, value)
    refused = casebank("serve --port 0")
    assert (refused.exit_code, refused.output) == (1, f"casebank: {name}: {said}\n")


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_refuses_it_alike(home: Path, monkeypatch: pytest.MonkeyPatch, words: str):
    monkeypatch.setenv("CASEBANK_POOL_SIZE", "abc")
    refused = casebank(words)
    said = "casebank: CASEBANK_POOL_SIZE: must be a whole number\n"
    assert (refused.exit_code, refused.stdout, refused.stderr) == (1, "", said)
    assert not list(home.iterdir())


@pytest.mark.parametrize("command", ["serve", "doctor", "train"])
def test_all_that_is_wrong_is_said_at_once_and_no_traceback_and_no_secret(tmp_path: Path, command: str):
    wrong = {
        "CASEBANK_POOL_SIZE": "abc",
        "CASEBANK_JWT_SECRET": "hunter2",
        "CASEBANK_JWT_SECRETS_OLD": "swordfish@2027-01-31T00:00:00Z",
        "CASEBANK_CONSOLE": "nonsense",
    }
    done = ran(tmp_path, command, **wrong)
    assert (done.returncode, done.stdout) == (1, "")
    lines = done.stderr.splitlines()
    assert sorted(line.split(": ")[1] for line in lines) == sorted(wrong)
    assert all(line.startswith("casebank: ") for line in lines)
    assert not any(secret in done.stderr for secret in ("hunter2", "swordfish"))


@pytest.mark.parametrize("command", ["serve --port 0", "doctor", "token --user ada"])
@pytest.mark.parametrize("old", ["short@2027-01-31T00:00:00Z", f"{LONG}@soon", LONG])
def test_an_older_secret_that_cannot_be_is_refused_before_anything_is_done(
    home: Path, monkeypatch: pytest.MonkeyPatch, command: str, old: str
):
    monkeypatch.setenv("CASEBANK_JWT_SECRET", LONG[::-1])
    monkeypatch.setenv("CASEBANK_JWT_SECRETS_OLD", old)
    refused = casebank(command)
    assert refused.exit_code == 1
    assert refused.output.startswith("casebank: CASEBANK_JWT_SECRETS_OLD: each ")
    assert (refused.output.count("\n"), LONG in refused.output) == (1, False)


@pytest.mark.parametrize("place", ["/proc/x", "file"])
@pytest.mark.parametrize(
    ("words", "secret"),
    [
        *((words, "") for words in ("serve --port 0", "token --user ada", "migrate", "console --user ada")),
        *((words, LONG) for words in ("serve --port 0", "migrate", "console --user ada")),  # a token needs no home then
    ],
)
def test_a_home_that_cannot_be_a_folder_is_one_line_and_no_service_is_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, words: str, secret: str
):
    (tmp_path / "file").touch()
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("CASEBANK_HOME", str(tmp_path / place))
    monkeypatch.setenv("CASEBANK_JWT_SECRET", secret)
    refused = casebank(words)
    assert (refused.exit_code, refused.output.count("\n")) == (1, 1)
    assert refused.output.startswith("casebank: CASEBANK_HOME: ")


def test_damaged_secrets_are_one_line_that_tells_none_of_them(home: Path):
    (home / "secrets.json").write_text('{"jwt_secret": ["swordfish"]}')
    refused = casebank("token --user ada")
    assert (refused.exit_code, refused.output.count("\n")) == (1, 1)
    assert refused.output.startswith("casebank: CASEBANK_HOME: ")
    assert "swordfish" not in refused.output


def test_a_secret_that_is_not_used_may_be_of_any_length(tmp_path: Path):
    keys = "https://issuer.example/jwks.json"
    assert Settings(home=tmp_path, jwks_url=keys, jwt_secret="unused", jwt_secrets_old="unused").jwks_url == keys
    assert len(Settings(home=tmp_path, jwt_secret="", jwt_secrets_old="unused").signing_secret) >= 32


def test_the_error_of_settings_made_in_a_program_shows_no_secret(tmp_path: Path):
    secret = "hunter" + "2"
    with pytest.raises(WrongSettings, match="CASEBANK_JWT_SECRET: needs 32 bytes") as refused:
        Settings(home=tmp_path, jwt_secret=secret)
    assert secret not in "".join(traceback.format_exception(refused.value))


def test_doctor_says_that_older_secrets_are_not_used_beside_the_secret_of_the_home(tmp_path: Path):
    old = f"{LONG}@2127-01-31T00:00:00Z"
    unused, used = (
        tokens(Settings(home=tmp_path, jwt_secret=secret, jwt_secrets_old=old)) for secret in (None, LONG[::-1])
    )
    assert (unused.ok, used.ok) == (False, True)
    assert unused.detail.endswith("CASEBANK_JWT_SECRETS_OLD is not used: the secret is the one in secrets.json")
