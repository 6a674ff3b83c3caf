"""The settings of the process; the only place that reads the environment."""

import json
import os
import secrets
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Literal

import platformdirs
from pydantic import BaseModel, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class HomeSecrets(BaseModel):
    """What the embedded set-up invents on first start and keeps in ``secrets.json``, readable by its owner only."""

    jwt_secret: str = Field(default_factory=lambda: secrets.token_urlsafe(48))
    master_key: str = Field(default_factory=lambda: secrets.token_hex(32))


class Settings(BaseSettings):
    """Every setting, its default and its unit; each is read from ``CASEBANK_<NAME>``."""

    model_config = SettingsConfigDict(env_prefix="CASEBANK_", extra="ignore", populate_by_name=True)

    home: Path = Path(platformdirs.user_data_dir("casebank"))
    """Where the embedded Postgres and the secrets live."""
    database_url: str | None = Field(default=None, validation_alias="DATABASE_URL")
    """Any PostgreSQL >= 15; unset: the embedded one."""
    pool_size: int = Field(default=10, ge=1)
    database_timeout_s: float = Field(default=10.0, gt=0)
    pgvector: Literal["auto", "off"] = "auto"
    """``off``: migrate as if the extension were missing; vectors are then compared by the service."""

    jwt_secret: SecretStr | None = None
    """HS256 secret of at least 32 bytes; unset: the one in ``home``."""
    jwks_url: str | None = None
    """Set: tokens are RS256, with keys from here; the secret is then unused."""
    jwt_issuer: str = "casebank"
    jwt_audience: str = "casebank"
    master_key: SecretStr | None = None
    """64 hex digits that wrap the users' keys; unset: the one in ``home``."""

    embedder: Literal["wordllama", "openai"] = "wordllama"
    openai_base_url: str = "https://api.openai.com/v1"
    openai_api_key: SecretStr = SecretStr("")
    openai_embedding_model: str = "text-embedding-3-small"
    openai_embedding_dimension: int = Field(default=1536, ge=1, le=16000)
    openai_ask_dimension: bool = False
    """``true``: the server is asked for vectors of that length; many models cannot shorten theirs, and refuse."""
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
    train_every_s: float = Field(default=86_400.0, ge=0)
    """How often policies are trained and judged; 0: only by ``casebank train`` and the API."""
    hidden_units: int = Field(default=0, ge=0, le=64)
    """Of the network that is trained; 0 is logistic regression, which ranked as well on the data it was measured on."""
    max_body_bytes: int = Field(default=4 * 1024 * 1024, ge=1024)

    @cached_property
    def home_secrets(self) -> HomeSecrets:
        """Returns the secrets kept in ``home``, made on first use."""
        return _load_or_make_secrets(self.home / "secrets.json")

    @property
    def signing_secret(self) -> str:
        """Returns the HS256 secret in force."""
        return self.jwt_secret.get_secret_value() if self.jwt_secret else self.home_secrets.jwt_secret

    @property
    def master_key_bytes(self) -> bytes:
        """Returns the 32 bytes that wrap the users' keys."""
        text = self.master_key.get_secret_value() if self.master_key else self.home_secrets.master_key
        return bytes.fromhex(text)

    def as_environment(self) -> dict[str, str]:
        """Returns the environment in which another process has these settings."""
        environment = dict(os.environ)
        for name in self.model_fields_set | {"home"}:
            variable = "DATABASE_URL" if name == "database_url" else f"CASEBANK_{name.upper()}"
            value = getattr(self, name)
            if value is None:
                environment.pop(variable, None)
            else:
                environment[variable] = value.get_secret_value() if isinstance(value, SecretStr) else str(value)
        return environment


def _load_or_make_secrets(path: Path) -> HomeSecrets:
    """Returns the secrets in the file; the first of several processes to come makes it, whole or not at all."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}")
        draft.touch(mode=0o600)
        draft.write_text(HomeSecrets().model_dump_json())
        with suppress(FileExistsError):  # another process was first: then theirs is the one
            os.link(draft, path)
        draft.unlink()
    return HomeSecrets.model_validate(json.loads(path.read_text()))
