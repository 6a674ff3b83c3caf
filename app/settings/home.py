"""The home folder, and the secrets that casebank makes there: ``secrets.json``, readable by the owner only."""

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import platformdirs
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from app.auth.keys import OldSecret
from app.settings.texts import is_strong
from app.wrong_settings import WrongSettings

USUAL_HOME = Path(platformdirs.user_data_dir("casebank"))


def expanded(home: Path) -> Path:
    """Returns the folder with the user's folder in place of ``~``.

    Raises:
        ValueError: this machine does not know the user's folder.
    """
    try:
        return home.expanduser()
    except RuntimeError:
        raise ValueError("begins with ~, and this machine does not know that user's folder") from None


HomeFolder = Annotated[
    Path,
    BeforeValidator(lambda home: USUAL_HOME if isinstance(home, str) and not home.strip() else home),
    AfterValidator(expanded),
]
"""Folder of CASEBANK_HOME; ``~`` is the user's folder; an empty text is ``USUAL_HOME``, never the current folder."""


class HomeSecrets(BaseModel):
    """Secrets of an installation whose settings have no secrets."""

    jwt_secret: str = Field(default_factory=lambda: secrets.token_urlsafe(48))
    jwt_secrets_old: list[OldSecret] = []
    master_key: str | None = None
    """64 hex digits; made for the embedded database only: two processes with a key each could not read each other."""
    master_key_old: str | None = None


@contextmanager
def home_errors() -> Iterator[None]:
    """Turns an error in the block into WrongSettings about CASEBANK_HOME, without quoting file contents."""
    try:
        yield
    except OSError as error:
        raise WrongSettings(f"CASEBANK_HOME: cannot be used: {error.strerror}: {error.filename}") from None
    except ValueError:
        raise WrongSettings(
            "CASEBANK_HOME: its secrets.json is damaged, or its secret too short; put back a copy of it"
        ) from None


def load_or_make_secrets(path: Path, *, master_key: bool) -> HomeSecrets:
    """Returns the secrets in the file; the first of several processes to come makes it, whole or not at all.

    ``master_key``: make a master key where the file has none.
    """
    if (kept := load_secrets(path)) is not None and (kept.master_key or not master_key):
        return kept
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path):
        kept = load_secrets(path) or HomeSecrets()
        if master_key and kept.master_key is None:
            kept.master_key = secrets.token_hex(32)
        _store(path, kept)
    return kept


def rotate_jwt_secret(path: Path, until: datetime) -> None:
    """Replaces the HS256 secret in the file; tokens of the one before are good until that time."""
    with _locked(path):
        kept, now = load_secrets(path) or HomeSecrets(), datetime.now(UTC)
        unexpired = [old for old in kept.jwt_secrets_old if old.until > now]
        older = [OldSecret(secret=kept.jwt_secret, until=until), *unexpired]
        _store(path, kept.model_copy(update={"jwt_secret": HomeSecrets().jwt_secret, "jwt_secrets_old": older}))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lets one process at a time change the file."""
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _store(path: Path, content: HomeSecrets) -> None:
    """Writes the file, whole or not at all, readable by its owner only, and onto the disk: the database is there, too.

    A loss of power must not take the master key of what was stored since.
    """
    draft = path.with_suffix(f".{os.getpid()}")
    draft.touch(mode=0o600)
    with draft.open("w") as file:
        file.write(content.model_dump_json(exclude_none=True))
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def load_secrets(path: Path) -> HomeSecrets | None:
    """Returns the secrets in the file; None if there is no file.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is damaged, or its secret is too short.
    """
    if not path.exists():
        return None
    kept = HomeSecrets.model_validate(json.loads(path.read_text()))
    if not is_strong(kept.jwt_secret):
        raise ValueError("the secret is too short")
    return kept
