"""The settings of the process; the only place that reads the environment."""

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

import platformdirs
from pydantic import (
    BaseModel,
    Field,
    ModelWrapValidatorHandler,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.auth.tokens import MIN_SECRET_BYTES, OldSecret
from app.wrong_settings import WrongSettings, in_words, variable_of
from retrieval.tables.kinds import Fleet

MASTER_KEY_DIGITS = 64
USUAL_HOME = Path(platformdirs.user_data_dir("casebank"))


class NoMasterKey(WrongSettings):
    """There is no usable master key; the text says how to make one."""


class HomeSecrets(BaseModel):
    """What the embedded set-up invents on first start and keeps in ``secrets.json``, readable by its owner only."""

    jwt_secret: str = Field(default_factory=lambda: secrets.token_urlsafe(48))
    jwt_secrets_old: list[OldSecret] = []
    master_key: str | None = None
    """Made for the embedded database only: two processes that made one each up would not read each other's users."""
    master_key_old: str | None = None


class Settings(BaseSettings):
    """Every setting, its default and its unit; each is read from ``CASEBANK_<NAME>``."""

    model_config = SettingsConfigDict(env_prefix="CASEBANK_", extra="ignore", populate_by_name=True)

    home: Path = USUAL_HOME
    """Where the embedded Postgres and the secrets live; empty is as unset, and never the current folder."""
    database_url: str | None = Field(default=None, validation_alias="DATABASE_URL")
    """Any PostgreSQL >= 15; unset: the embedded one."""
    pool_size: int = Field(default=10, ge=1)
    database_timeout_s: float = Field(default=10.0, gt=0)
    pgvector: Literal["auto", "off"] = "auto"
    """``off``: migrate as if the extension were missing; vectors are then compared by the service."""

    jwks_url: str | None = None
    """Set: tokens are RS256, with keys from here; the secrets are then unused."""
    jwt_secret: SecretStr | None = None
    """HS256 secret of at least 32 bytes; unset: the one in ``home``."""
    jwt_secrets_old: SecretStr = SecretStr("")
    """Older secrets whose tokens are still good: ``secret@until``, with spaces between them; until is ISO 8601."""
    jwt_issuer: str = "casebank"
    jwt_audience: str = "casebank"
    operator_from: str = "127.0.0.0/8 ::1/128"
    """Networks that see ``/metrics`` and the numbers of ``/readyz`` without a token; empty: none."""
    console: str = "loopback"
    """Where people may open the console: ``loopback``, ``off``, or further addresses with spaces between them, as
    ``https://memory.example.org``."""
    master_key: SecretStr | None = None
    """64 hex digits that wrap the users' keys; unset: the one in ``home``, for the embedded Postgres only."""
    master_key_old: SecretStr | None = None
    """Keys of before, apart by commas, until ``casebank rotate-key`` has replaced them."""

    public_url: str | None = None
    """Where callers find the service, as ``https://memory.example.com``; unset: as the request's ``Host`` says."""
    mcp_agent: str = "assistant"
    """Whose memory ``/mcp`` is about where its URL names no ``agent``."""
    mcp_origins: str = ""
    """Origins whose pages may call ``/mcp``, beside this machine's and ``public_url``; apart by spaces."""

    seal: Literal["payload", "all"] = "all"
    """What of a case is encrypted with its user's key: the payload, or all that the database need not search."""

    embedder: Literal["wordllama", "openai"] = "wordllama"
    openai_base_url: str = "https://api.openai.com/v1"
    openai_api_key: SecretStr = SecretStr("")
    openai_embedding_model: str = "text-embedding-3-small"
    openai_embedding_dimension: int = Field(default=1536, ge=1, le=16000)
    openai_ask_dimension: bool | None = None
    """Whether the server is asked for vectors of that length; unset: if one is set, until the server refuses."""
    openai_max_chars: int = Field(default=8_192, ge=1)
    """What is sent of a text; longer ones are cut."""
    embedder_timeout_s: float = Field(default=2.0, gt=0)
    """Longest wait for one request to the embedder."""
    embedder_budget_s: float = Field(default=5.0, gt=0)
    """Longest wait for vectors in all, retries included; then keywords carry the search."""

    llm: Literal["off", "openai"] = "off"
    """``openai``: profiles may have queries rewritten and runs explained by a language model; each must ask for it."""
    llm_base_url: str = "https://api.openai.com/v1"
    llm_api_key: SecretStr = SecretStr("")
    llm_model: str = "gpt-4o-mini"
    llm_timeout_s: float = Field(default=20.0, gt=0)
    """Longest wait for one request to the language model."""
    llm_budget_s: float = Field(default=40.0, gt=0)
    """Longest wait for an answer in all, retries included; then the rules explain the run. Keep it below the lease."""
    llm_rewrite_budget_s: float = Field(default=1.5, gt=0)
    """Longest wait for a rewritten query; then the query itself is searched for."""
    llm_max_output_tokens: int = Field(default=2_000, ge=64)
    """Longest answer; a model that thinks before it answers needs more."""
    llm_tokens_per_day: int = Field(default=200_000, ge=0)
    """Of each profile that has no number of its own; then the rules do it all until midnight UTC."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """``debug``: every stage of every retrieve, retain and work, with its time."""

    explore: bool = True
    """``false``: nothing is tried out, whatever the profiles' budgets say."""

    worker_in_service: bool = True
    worker_poll_s: float = Field(default=0.2, gt=0)
    worker_lease_s: float = Field(default=60.0, gt=0)
    worker_max_attempts: int = Field(default=8, ge=1)
    worker_backoff_s: float = Field(default=1.0, gt=0)
    """Delay after a case's first failure; doubles with each further one, up to five minutes."""
    stop_within_s: int = Field(default=10, ge=1)
    """How long a stopping service waits for the requests under way."""
    upkeep_every_s: float = Field(default=3600.0, gt=0)
    pruned_kept_days: int = Field(default=30, ge=0)
    run_silent_s: float = Field(default=7200.0, gt=0)
    """A run under way without a step for so long is ended as aborted, at the next upkeep; it may yet go on."""
    seal_every_s: float = Field(default=60.0, gt=0)
    """How often the chains of the audit are sealed with the installation's key."""
    train_every_s: float = Field(default=86_400.0, ge=0)
    """How often policies are trained and judged; 0: only by ``casebank train`` and the API."""
    fleet: Fleet = "choice"
    """Who takes part in a fleet, whose users share what is learned: ``off``, nobody; ``choice``, the profiles that ask
    to; ``on``, all that do not ask not to."""
    hidden_units: int = Field(default=0, ge=0, le=64)
    """Of the network that is trained; 0 is logistic regression, which ranked as well on the data it was measured on."""
    limits: bool = True
    """``false``: nobody is asked to come back later: no limit of rate, no turns, no bound on the queue."""
    user_reads_per_minute: int = Field(default=6_000, ge=0, le=1_000_000)
    """Of one user over all replicas; 0: any number. So are the next five, which hold beside it."""
    user_writes_per_minute: int = Field(default=3_000, ge=0, le=1_000_000)
    agent_reads_per_minute: int = Field(default=4_000, ge=0, le=1_000_000)
    agent_writes_per_minute: int = Field(default=2_000, ge=0, le=1_000_000)
    session_reads_per_minute: int = Field(default=2_000, ge=0, le=1_000_000)
    session_writes_per_minute: int = Field(default=1_000, ge=0, le=1_000_000)
    limits_at_once_s: float = Field(default=15.0, gt=0, le=3_600)
    """How many seconds' worth of a limit may come at once."""
    requests_at_once: int = Field(default=64, ge=1)
    """That one process works on."""
    user_requests_at_once: int = Field(default=4, ge=1)
    """Of one user; more wait for their turn."""
    turn_wait_s: float = Field(default=10.0, gt=0, le=60)
    """Longest wait for a turn, or for a limit; then the answer is 429."""
    crowd_share: float = Field(default=0.1, gt=0, le=1)
    """Of a process's time, for a user with several requests at once, as long as others are active."""
    user_pending: int = Field(default=5_000, ge=0)
    """Most cases of one user in the queue; 0, here or in the next one: any number."""
    all_pending: int = Field(default=50_000, ge=0)
    max_body_bytes: int = Field(default=4 * 1024 * 1024, ge=1024)
    body_timeout_s: float = Field(default=30.0, gt=0)
    """Longest time for a body to arrive, for its turn to be checked, and for an answer to be read."""
    body_budget_s: float = Field(default=5.0, gt=0)
    """Longest processor time to parse, validate and redact one body; more is answered with 413."""
    body_processes: int = Field(default=2, ge=1)
    """Most processes beside the service's own that check bodies of more than 4 KiB; each has about 100 MiB."""
    bodies_in_flight_bytes: int = Field(default=16 * 1024 * 1024, ge=1024)
    """Most bytes of bodies over 16 KiB that are held at once, half of it for any one user; the next ones wait."""
    headers_timeout_s: float = Field(default=10.0, gt=0)
    """Longest time for a request's headers to arrive."""
    connections: int = Field(default=1000, ge=1)
    """Most at once; further ones are answered with 503 and closed."""
    connections_per_address: int = Field(default=200, ge=0)
    """Most at once from one address; 0: as many as in all, for a service behind a proxy, which is one address."""

    @model_validator(mode="wrap")
    @classmethod
    def _told_in_words(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(given)
        except ValidationError as error:
            raise in_words(error.errors(include_url=False, include_input=False)) from None

    @field_validator("home", mode="before")
    @classmethod
    def _empty_is_unset(cls, home: object) -> object:
        return USUAL_HOME if isinstance(home, str) and not home.strip() else home

    @field_validator("jwks_url")
    @classmethod
    def _is_address(cls, url: str | None) -> str | None:
        if url is not None and not _is_http(url):
            raise ValueError("must be an address like https://issuer.example/jwks.json")
        return url

    @field_validator("jwt_secret")
    @classmethod
    def _is_long_enough(cls, secret: SecretStr | None, others: ValidationInfo) -> SecretStr | None:
        if secret and not others.data.get("jwks_url") and not _is_strong(secret.get_secret_value()):
            raise ValueError(f"needs {MIN_SECRET_BYTES} bytes at least")
        return secret

    @field_validator("jwt_secrets_old")
    @classmethod
    def _are_long_enough(cls, given: SecretStr, others: ValidationInfo) -> SecretStr:
        wrong_or_set = "jwt_secret" not in others.data or others.data["jwt_secret"]
        if wrong_or_set and not others.data.get("jwks_url"):
            _old_secrets(given)
        return given

    @field_validator("operator_from")
    @classmethod
    def _are_networks(cls, text: str) -> str:
        _networks(text)
        return text

    @field_validator("console")
    @classmethod
    def _are_origins(cls, text: str) -> str:
        _origins(text)
        return text

    def make_home(self) -> None:
        """Makes the folder ``home`` where it is not there.

        Raises:
            WrongSettings: it cannot be made.
        """
        with _said_of_home():
            self.home.mkdir(mode=0o700, parents=True, exist_ok=True)

    @cached_property
    def home_secrets(self) -> HomeSecrets:
        """Returns the secrets kept in ``home``, made on first use.

        Raises:
            WrongSettings: they cannot be read or made.
        """
        with _said_of_home():
            return _load_or_make_secrets(self._secrets_path, master_key=self.database_url is None)

    @property
    def _secrets_path(self) -> Path:
        return self.home / "secrets.json"

    @property
    def signing_secret(self) -> str:
        """Returns the HS256 secret in force."""
        return self.jwt_secret.get_secret_value() if self.jwt_secret else self.home_secrets.jwt_secret

    @property
    def older_signing_secrets(self) -> tuple[OldSecret, ...]:
        """Returns the HS256 secrets that sign no more, those of ``home`` only beside the one in ``home``.

        Raises:
            ValueError: one is too short or does not say until when, or the time lacks its zone.
        """
        if not self.jwt_secret:
            return tuple(self.home_secrets.jwt_secrets_old)
        return _old_secrets(self.jwt_secrets_old)

    def rotate_signing_secret(self, until: datetime) -> None:
        """Makes a new HS256 secret in ``home``; tokens of the one before are good until that time.

        Raises:
            ValueError: the secret is not the one in ``home``.
        """
        if self.jwt_secret or self.jwks_url:
            raise ValueError(
                'the secret is not kept in CASEBANK_HOME: see "Changing the JWT secret" in docs/operating.md'
            )
        made = self.home_secrets  # there is a file from now on
        with _turn(self._secrets_path):
            kept, now = _load(self._secrets_path) or made, datetime.now(UTC)
            still = [old for old in kept.jwt_secrets_old if old.until > now]
            older = [OldSecret(secret=kept.jwt_secret, until=until), *still]
            change = {"jwt_secret": HomeSecrets().jwt_secret, "jwt_secrets_old": older}
            _store(self._secrets_path, kept.model_copy(update=change))
        del self.home_secrets

    @property
    def operator_networks(self) -> list[IPv4Network | IPv6Network]:
        """Returns the networks that see the numbers without a token.

        Raises:
            ValueError: one is no network.
        """
        return _networks(self.operator_from)

    @property
    def console_origins(self) -> list[str] | None:
        """Returns the origins besides the machine's own at which the console answers; None: at none at all.

        Raises:
            ValueError: one is no origin.
        """
        return _origins(self.console)

    @property
    def master_key_bytes(self) -> bytes:
        """Returns the 32 bytes that wrap the users' keys.

        Raises:
            NoMasterKey: none is set, and for an external database none is ever made up; or it is none.
        """
        text = self.master_key.get_secret_value() if self.master_key else self._kept_secrets.master_key
        if text is None:
            raise NoMasterKey(
                "DATABASE_URL is set, so no master key is made up: set CASEBANK_MASTER_KEY, the same for every process"
                " on that database, to 64 hex digits (openssl rand -hex 32 makes them)"
            )
        return _key_bytes(text, "CASEBANK_MASTER_KEY")

    @property
    def old_master_keys(self) -> tuple[bytes, ...]:
        """Returns the master keys of before, which open what was not wrapped anew yet.

        Raises:
            NoMasterKey: one of them is none.
        """
        if self.master_key_old is not None:
            text = self.master_key_old.get_secret_value()
        else:
            text = ("" if self.master_key else self._kept_secrets.master_key_old) or ""
        parts = text.split(",")
        return tuple(_key_bytes(part.strip(), "CASEBANK_MASTER_KEY_OLD") for part in parts if part.strip())

    @property
    def _kept_secrets(self) -> HomeSecrets:
        """The secrets in ``home``; with an external database none are made."""
        if self.database_url is not None and not self._secrets_path.exists():
            return HomeSecrets()
        return self.home_secrets

    def as_environment(self) -> dict[str, str]:
        """Returns the environment in which another process has these settings."""
        environment = dict(os.environ)
        for name in self.model_fields_set | {"home"}:
            variable, value = variable_of(name), getattr(self, name)
            if value is None:
                environment.pop(variable, None)
            else:
                environment[variable] = value.get_secret_value() if isinstance(value, SecretStr) else str(value)
        return environment


@contextmanager
def _said_of_home() -> Iterator[None]:
    """Says of what fails in there that it is the home which cannot be used, and nothing of what was read."""
    try:
        yield
    except OSError as error:
        raise WrongSettings(f"CASEBANK_HOME: cannot be used: {error.strerror}: {error.filename}") from None
    except ValueError:
        raise WrongSettings("CASEBANK_HOME: its secrets.json is damaged; put back a copy of it") from None


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.netloc)


def _is_strong(secret: str) -> bool:
    return len(secret.encode()) >= MIN_SECRET_BYTES


def _networks(text: str) -> list[IPv4Network | IPv6Network]:
    try:
        return [ip_network(part) for part in text.split()]
    except ValueError:
        raise ValueError("CASEBANK_OPERATOR_FROM: networks like 10.0.0.0/8 with spaces between them") from None


def _origins(text: str) -> list[str] | None:
    return None if text == "off" else [_origin(part) for part in text.split() if part != "loopback"]


def _origin(text: str) -> str:
    if not _is_http(text) or text != "{0.scheme}://{0.netloc}".format(urlsplit(text)).lower():
        raise ValueError("CASEBANK_CONSOLE: loopback, off, or addresses like https://memory.example.org")
    return text


def _key_bytes(text: str, name: str) -> bytes:
    if len(text) != MASTER_KEY_DIGITS or set(text.lower()) - set("0123456789abcdef"):
        raise NoMasterKey(f"{name} must be 64 hex digits (openssl rand -hex 32 makes them)")
    return bytes.fromhex(text)


def _load_or_make_secrets(path: Path, *, master_key: bool) -> HomeSecrets:
    """Returns the secrets in the file; the first of several processes to come makes it, whole or not at all.

    Args:
        path: of the file.
        master_key: whether one is to be among them, and is made where it is not.
    """
    if (kept := _load(path)) is not None and (kept.master_key or not master_key):
        return kept
    path.parent.mkdir(parents=True, exist_ok=True)
    with _turn(path):
        kept = _load(path) or HomeSecrets()
        if master_key and kept.master_key is None:
            kept.master_key = secrets.token_hex(32)
        _store(path, kept)
    return kept


@contextmanager
def _turn(path: Path) -> Iterator[None]:
    """Lets one process at a time change the file."""
    with path.with_suffix(".lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield


def _store(path: Path, content: HomeSecrets) -> None:
    """Writes the file, whole or not at all, readable by its owner only."""
    draft = path.with_suffix(f".{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text(content.model_dump_json(exclude_none=True))
    draft.replace(path)


def _load(path: Path) -> HomeSecrets | None:
    return HomeSecrets.model_validate(json.loads(path.read_text())) if path.exists() else None


def _old_secrets(given: SecretStr) -> tuple[OldSecret, ...]:
    return tuple(_old_secret(text) for text in given.get_secret_value().split())


def _old_secret(text: str) -> OldSecret:
    secret, _, until = text.rpartition("@")
    try:
        old = OldSecret(secret=secret, until=datetime.fromisoformat(until))
    except ValueError:
        raise ValueError("CASEBANK_JWT_SECRETS_OLD: each is secret@until, until like 2026-12-31T00:00:00Z") from None
    if not _is_strong(secret):
        raise ValueError(f"CASEBANK_JWT_SECRETS_OLD: each secret needs {MIN_SECRET_BYTES} bytes at least")
    return old
