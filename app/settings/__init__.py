"""The settings of the process; the only place that reads the environment."""

import os
import re
from datetime import datetime
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    ModelWrapValidatorHandler,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from app.auth.keys import MIN_SECRET_BYTES, OldSecret
from app.settings import texts
from app.settings.home import USUAL_HOME, HomeFolder, HomeSecrets, home_errors, load_or_make_secrets, rotate_jwt_secret
from app.settings.numbers import CENTURY_DAYS, LONGEST_S, Connections, Limits, Timeouts, WorkerPace
from app.settings.texts import NoMasterKey
from app.wrong_settings import WrongSettings, as_lines, variable_of
from writer.run import AgentKey

__all__ = ["Connections", "HomeSecrets", "Limits", "NoMasterKey", "Settings", "Timeouts", "WorkerPace"]

ENV_FILE = "CASEBANK_ENV_FILE"
"""Variable that names a file of further variables, for the command line."""
OTHER_READERS = {"CASEBANK_DATA", ENV_FILE, "CASEBANK_TOKEN", "CASEBANK_URL"}
"""Variables that the benchmarks, the clients and the command line read."""
ORCHESTRATED = re.compile(r"CASEBANK_(SERVICE_|PORT(_|$))")
"""Variables that Kubernetes sets in every container beside a service that is called casebank."""


class Settings(BaseSettings):
    """Every setting, its default and its unit; each is read from ``CASEBANK_<NAME>``."""

    model_config = SettingsConfigDict(env_prefix="CASEBANK_", extra="ignore", populate_by_name=True)

    home: HomeFolder = USUAL_HOME
    """The user's data directory: folder of the embedded Postgres and the secrets. Empty: the default, and never the
    current folder."""
    database_url: str | None = Field(default=None, validation_alias="DATABASE_URL")
    """Unset: the embedded Postgres; otherwise the URL of a PostgreSQL 15 or newer."""
    pool_size: int = Field(default=10, ge=1)
    """10 connections to the database for transactions, and another 10 for single statements."""
    idle_s: float = Field(default=300.0, ge=0, le=LONGEST_S)
    """300 seconds without a request or work after which a service closes its connections and lets the database be
    until the next request; 0: never."""
    pgvector: Literal["auto", "off"] = "auto"
    """``auto``: pgvector where the database has it; ``off``: migrations without it; the service compares vectors."""

    jwks_url: texts.HttpAddress | None = None
    """Unset: HS256 tokens; otherwise RS256 and ES256 tokens with the keys at this address; the secrets are unused."""
    jwt_secret: SecretStr | None = None
    """Unset: the HS256 secret in ``home``; otherwise a secret of at least 32 bytes."""
    jwt_secrets_old: SecretStr = SecretStr("")
    """Empty: further HS256 secrets that are accepted, ``secret@until`` with spaces between them; until is ISO 8601."""
    jwt_issuer: str = "casebank"
    """``casebank``: the issuer (``iss``) that tokens must name."""
    jwt_audience: str = "casebank"
    """``casebank``: the audience (``aud``) that tokens must name."""
    operator_from: texts.Networks = "127.0.0.0/8 ::1/128"
    """This machine: networks that see ``/metrics`` and the numbers of ``/readyz`` without a token; empty: none."""
    console: texts.Origins = "loopback"
    """``loopback``: addresses at which the console answers, with spaces between them; ``off``: at none."""
    master_key: SecretStr | None = None
    """Unset: the key in ``home``, for the embedded Postgres only; otherwise 64 hex digits that wrap the users' keys."""
    master_key_old: SecretStr | None = None
    """Unset: the old keys in ``home``; otherwise earlier master keys with commas between them, which ``casebank
    rotate-key`` replaces."""

    public_url: texts.HttpAddress | None = None
    """Unset: the request's ``Host``; otherwise the service's address for callers, as ``https://memory.example.com``."""
    mcp_agent: AgentKey = "assistant"
    """``assistant``: agent whose memory ``/mcp`` serves where its URL names none."""
    mcp_origins: texts.Callers = ""
    """Empty: further origins whose pages may call ``/mcp``, with spaces between them."""

    seal: Literal["payload", "all"] = "all"
    """``all``: encryption of all texts that the database need not search, with the user's key; ``payload``: of tool
    traces, turns and prompts alone."""

    embedder: Literal["wordllama", "openai"] = "wordllama"
    """``wordllama``: the embedder in this process; ``openai``: any server with that wire format."""
    openai_base_url: texts.HttpAddress = "https://api.openai.com/v1"
    """``https://api.openai.com/v1``: address of the embedder's server."""
    openai_api_key: SecretStr = SecretStr("")
    """Empty: API key for the embedder's server."""
    openai_embedding_model: str = "text-embedding-3-small"
    """``text-embedding-3-small``: name of the embedding model."""
    openai_embedding_dimension: int = Field(default=1536, ge=1, le=16000)
    """1,536 numbers: length of a vector."""
    openai_ask_dimension: bool | None = None
    """Unset: where the dimension is set, the server is asked for it, until it refuses; ``true``: always; ``false``:
    never."""
    openai_max_chars: int = Field(default=8_192, ge=1)
    """8,192 characters of a text that are embedded; the rest is cut."""

    llm: Literal["off", "openai"] = "off"
    """``off``: no language model; ``openai``: any server with that wire format, for the profiles that ask for it."""
    llm_base_url: texts.HttpAddress = "https://api.openai.com/v1"
    """``https://api.openai.com/v1``: address of the language model's server."""
    llm_api_key: SecretStr = SecretStr("")
    """Empty: API key for the language model's server."""
    llm_model: str = "gpt-4o-mini"
    """``gpt-4o-mini``: name of the language model."""
    llm_max_output_tokens: int = Field(default=2_000, ge=64)
    """2,000 tokens: longest answer; a model that thinks before it answers needs more."""
    llm_tokens_per_day: int = Field(default=200_000, ge=0)
    """200,000 tokens a day for each profile without a number of its own; then rules do the work until midnight UTC."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """``info``: least severe entries of the log; ``debug``: each stage of each request too, with its time."""
    explore: bool = True
    """``true``: some random slates, within each profile's budget, to learn what helps; ``false``: no random slates."""
    first_order: Literal["words", "rare", "meaning", "fused", "telling", "mixture", "vote", "outcomes"] = "vote"
    """``vote``: the order of cases that a new profile starts with, until its own runs tell of a better one; ``casebank
    policy orders`` tells which is right most often here."""

    worker_in_service: bool = True
    """``true``: the service works off its queue; ``false``: only ``casebank worker`` processes do."""
    worker_pace: Annotated[WorkerPace, NoDecode] = WorkerPace()
    """``poll_s=0.2,lease_s=60,attempts=8,backoff_s=1``: pace of the workers, in seconds and attempts."""
    upkeep_every_s: float = Field(default=3600.0, gt=0, le=LONGEST_S)
    """3,600 seconds from one pruning of the banks to the next."""
    pruned_kept_days: int = Field(default=30, ge=0, le=CENTURY_DAYS)
    """30 days that a pruned case, and a run that ended, can still be seen."""
    run_silent_s: float = Field(default=7200.0, gt=0, le=LONGEST_S)
    """7,200 seconds without a step after which a run under way counts as aborted; it may still go on."""
    train_every_s: float = Field(default=86_400.0, ge=0, le=LONGEST_S)
    """86,400 seconds from one training of the policies to the next; 0: by ``casebank train`` and the API alone."""

    limits: Annotated[Limits, NoDecode] = Limits()
    """``user_reads=6000,…``: limits of requests and of the queue; ``off``: none."""
    timeouts_s: Annotated[Timeouts, NoDecode] = Timeouts()
    """``database=10,…`` seconds: longest waits."""
    connections: Annotated[Connections, NoDecode] = Connections()
    """``total=1000,per_address=200``: most open connections of one process."""
    max_body_bytes: int = Field(default=4 * 1024 * 1024, ge=1024)
    """4 MiB, in bytes: largest body; a larger one is answered with 413."""
    body_processes: int = Field(default=2, ge=1)
    """2 processes at most, beside the service's own, that check bodies of more than 4 KiB; each has about 100 MiB."""

    @model_validator(mode="wrap")
    @classmethod
    def _refuse_with_names(cls, values: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Turns pydantic's errors into one line each."""
        try:
            return handler(values)
        except ValidationError as error:
            lines = as_lines(error.errors(include_url=False, include_input=False))
            raise WrongSettings("\n".join(lines)) from None

    @field_validator("jwt_secret")
    @classmethod
    def _is_long_enough(cls, secret: SecretStr | None, others: ValidationInfo) -> SecretStr | None:
        if secret and not others.data.get("jwks_url") and not texts.is_strong(secret.get_secret_value()):
            raise ValueError(f"needs {MIN_SECRET_BYTES} bytes at least")
        return secret

    @field_validator("jwt_secrets_old")
    @classmethod
    def _are_long_enough(cls, secrets: SecretStr, others: ValidationInfo) -> SecretStr:
        wrong_or_set = "jwt_secret" not in others.data or others.data["jwt_secret"]
        if wrong_or_set and not others.data.get("jwks_url"):
            texts.old_secrets(secrets.get_secret_value())
        return secrets

    def make_home(self) -> None:
        """Makes the folder ``home`` where it is missing.

        Raises:
            WrongSettings: the folder cannot be made.
        """
        with home_errors():
            self.home.mkdir(mode=0o700, parents=True, exist_ok=True)

    @cached_property
    def home_secrets(self) -> HomeSecrets:
        """Returns the secrets kept in ``home``, made on first use.

        Raises:
            WrongSettings: the file cannot be read or made.
        """
        with home_errors():
            return load_or_make_secrets(self._secrets_path, master_key=self.database_url is None)

    @property
    def _secrets_path(self) -> Path:
        return self.home / "secrets.json"

    @property
    def signing_secret(self) -> str:
        """Returns the HS256 secret in force."""
        return self.jwt_secret.get_secret_value() if self.jwt_secret else self.home_secrets.jwt_secret

    @property
    def older_signing_secrets(self) -> tuple[OldSecret, ...]:
        """Returns the HS256 secrets that only verify; those of ``home`` count beside the secret of ``home`` alone.

        Raises:
            ValueError: a secret is too short, or its end is missing or has no zone.
        """
        if not self.jwt_secret:
            return tuple(self.home_secrets.jwt_secrets_old)
        return texts.old_secrets(self.jwt_secrets_old.get_secret_value())

    def rotate_signing_secret(self, until: datetime) -> None:
        """Makes a new HS256 secret in ``home``; tokens signed with the earlier one are good until that time.

        Raises:
            ValueError: the secret in force is not kept in ``home``.
            WrongSettings: the file cannot be written.
        """
        if self.jwt_secret or self.jwks_url:
            raise ValueError(
                'the secret is not kept in CASEBANK_HOME: see "Changing the JWT secret" in docs/operating.md'
            )
        _ = self.home_secrets  # the file is made where it is missing
        with home_errors():
            rotate_jwt_secret(self._secrets_path, until)
        del self.home_secrets

    @property
    def master_key_bytes(self) -> bytes:
        """Returns the 32 bytes that wrap the users' keys.

        Raises:
            NoMasterKey: the key is malformed, or missing with an external database, for which no key is ever made.
        """
        text = self.master_key.get_secret_value() if self.master_key else self._kept_secrets.master_key
        if text is None:
            raise NoMasterKey(
                "DATABASE_URL is set, so no master key is made up: set CASEBANK_MASTER_KEY, the same for every process"
                " on that database, to 64 hex digits (openssl rand -hex 32 makes them)"
            )
        return texts.key_bytes(text, "CASEBANK_MASTER_KEY")

    @property
    def old_master_keys(self) -> tuple[bytes, ...]:
        """Returns the earlier master keys, which open the users' keys that were not wrapped again yet.

        Raises:
            NoMasterKey: a key is malformed.
        """
        if self.master_key_old is not None:
            text = self.master_key_old.get_secret_value()
        else:
            text = ("" if self.master_key else self._kept_secrets.master_key_old) or ""
        parts = text.split(",")
        return tuple(texts.key_bytes(part.strip(), "CASEBANK_MASTER_KEY_OLD") for part in parts if part.strip())

    @property
    def _kept_secrets(self) -> HomeSecrets:
        """Returns the secrets in ``home``; with an external database no file is made."""
        if self.database_url is not None and not self._secrets_path.exists():
            return HomeSecrets()
        return self.home_secrets

    @classmethod
    def unknown_variables(cls) -> list[str]:
        """Returns a line for each ``CASEBANK_…`` variable of the environment that is no setting, with a similar one."""
        lines, known = [], {variable_of(name) for name in cls.model_fields} | OTHER_READERS
        for name in sorted(os.environ.keys() - known):
            if name.startswith("CASEBANK_") and not ORCHESTRATED.match(name):
                near = get_close_matches(name, known, n=1, cutoff=0.8)
                lines.append(f"{name} is no setting" + (f"; did you mean {near[0]}?" if near else ""))
        return lines

    def as_environment(self) -> dict[str, str]:
        """Returns the environment in which another process has these settings."""
        environment = {name: value for name, value in os.environ.items() if name != ENV_FILE}  # it was read already
        for name in self.model_fields_set | {"home"}:
            variable, value = variable_of(name), getattr(self, name)
            if value is None:
                environment.pop(variable, None)
            else:
                environment[variable] = value.get_secret_value() if isinstance(value, SecretStr) else str(value)
        return environment
