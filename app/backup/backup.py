"""Backup and restore of the embedded database: a dump, and a manifest beside it; neither holds a master key.

A dump is as secret as the database. What is sealed in it opens only with the master key, which is to be kept apart.
Erasures win over backups: what was erased after a backup was made is erased again while that backup is restored.
Revoked tokens stay revoked, too, as far as the replaced bank knows of them.
"""

import hashlib
import json
import os
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import asyncpg

from app import postgres
from app.backup.erase_again import erase_again, read_receipts, tombstones, users
from app.postgres.migrate import migrate
from app.postgres.pools import one_connection
from app.postgres.server import REPLACED, RESTORED
from app.settings import Settings
from retrieval.patterns import read
from writer.privacy.master_keys import MasterKeys, fingerprint

_SQL = read("app.postgres", "statements.toml")["backup"]

DUMP, MANIFEST = "casebank.dump", "manifest.json"
BANK = "casebank"


class BackupRefused(ValueError):
    """The backup or restore was refused and changed nothing; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Description of a backup, beside the dump.

    Attributes:
        created_at: time of the backup, ISO 8601, UTC.
        master_key: fingerprint of the key that opens sealed texts; during a rotation several, with commas between.
    """

    casebank: str
    revision: str
    created_at: str
    sha256: str
    master_key: str


async def backup(settings: Settings, folder: Path) -> Manifest:
    """Writes a dump of the embedded database and its manifest into a new folder, while the service may run.

    Raises:
        BackupRefused: the folder is not empty, there is no bank, or the database is not the embedded one.
    """
    _refuse_external(settings)
    with postgres.running(settings.home) as server:
        async with one_connection(server.url()) as bank:
            if await bank.fetchval("SELECT to_regclass('alembic_version')") is None:
                raise BackupRefused(f"there is no bank in {settings.home} to back up")
            revision = await bank.fetchval("SELECT version_num FROM alembic_version")
            rows = await bank.fetch("SELECT fingerprint FROM master_keys WHERE status <> 'retired' ORDER BY 1")
        # of the master keys that open the dump; a bank that no process has used yet knows none
        keys = [row["fingerprint"] for row in rows] or [fingerprint(settings.master_key_bytes)]
        draft = _draft(folder)
        try:
            _run("pg_dump", server, "--format=custom", f"--file={draft}", BANK)
        except BaseException:  # a part of a dump would fill a full disk, and the folder would not be taken again
            draft.unlink()
            raise
    manifest = Manifest(
        casebank=version("casebank"),
        revision=revision,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        sha256=_digest(draft),
        master_key=",".join(keys),
    )
    draft.rename(folder / DUMP)
    with os.fdopen(os.open(folder / MANIFEST, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        out.write(json.dumps(asdict(manifest), indent=2) + "\n")
    return manifest


async def restore(
    settings: Settings, folder: Path, receipts: Iterable[Path], *, replace: bool
) -> tuple[Manifest, int, int]:
    """Replaces the bank by a backup, and erases the users who were erased since.

    Returns the backup's manifest, the number of users in the bank, and the number of users whom the backup brought back
    and who were erased again; their deleted rows are in the server's files once more, until a scrub.

    Revoked tokens stay revoked. A service or command that starts meanwhile waits for the end: what it stored, erased or
    revoked in the bank that is replaced would be lost.

    Args:
        settings: settings of the installation; its master keys must include the backup's.
        folder: folder that `backup` wrote.
        receipts: files with receipts of erasures unknown to this installation, printed by ``casebank purge --json``.
        replace: True to replace a bank with content, which is lost.

    Raises:
        BackupRefused, MasterKeyMismatch, NotErasedAgain: the bank was not changed.
    """
    _refuse_external(settings)
    held = MasterKeys.of(settings.master_key_bytes, *settings.old_master_keys)
    manifest = _checked(folder, held)
    erased = read_receipts(receipts)
    with postgres.running(settings.home) as server, postgres.alone(settings.home) as alone:
        url, restored = server.url(), server.url(RESTORED)
        await migrate(url, pgvector=settings.pgvector)  # makes the roles, too, which no dump carries
        in_use = BackupRefused("the bank is in use: stop the service and its workers first")
        others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        async with one_connection(url) as bank:
            if not alone or await bank.fetchval(others):  # a service at rest has no connection
                raise in_use
            if not replace and await users(bank):
                raise BackupRefused("the bank is not empty: back it up, and restore with --replace")
            erased += (await tombstones(bank)).items()
            kept = {name: list(map(tuple, await bank.fetch(_SQL[name]))) for name in ("receipts", "revocations")}
        await _administer(server, f"CREATE DATABASE {RESTORED}")
        try:
            _run("pg_restore", server, "--exit-on-error", f"--dbname={RESTORED}", str(folder / DUMP))
            count, again = await _catch_up(settings, restored, erased, kept)
            # in one transaction, so that there is no moment without a bank
            renamed = f"ALTER DATABASE {BANK} RENAME TO {REPLACED}; ALTER DATABASE {RESTORED} RENAME TO {BANK}"
            await _administer(server, renamed)
        except asyncpg.ObjectInUseError:  # a program of another maker, which knows no turns
            raise in_use from None
        finally:  # also after a refusal: the backup's rows must not stay, out of reach of a purge
            for name in (RESTORED, REPLACED):
                await _administer(server, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    return manifest, count, again


async def _catch_up(
    settings: Settings, url: str, erased: Iterable[tuple[str, datetime]], kept: dict[str, Any]
) -> tuple[int, int]:
    """Does to a restored bank what was done to the replaced one since: migrations, revocations, erasures.

    Returns the number of its users, and of those erased again.
    """
    await migrate(url, pgvector=settings.pgvector)
    async with one_connection(url) as bank:  # their reasons go with who is erased
        await bank.executemany(_SQL["keep_revocation"], kept["revocations"])
    again = await erase_again(settings, url, erased)  # checks the master key: its rotation may have begun in the dump
    async with one_connection(url) as bank:
        await bank.executemany(_SQL["keep_receipt"], kept["receipts"])
        return len(await users(bank)), len(again)


def _draft(folder: Path) -> Path:
    """Makes the folder, and in it the file that becomes the dump, readable by their owner only."""
    if folder.exists() and any(folder.iterdir()):
        raise BackupRefused(f"{folder} is not empty: name a new folder, so that no older backup is half overwritten")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = folder / f"{DUMP}.part"
    draft.touch(mode=0o600)
    return draft


def _refuse_external(settings: Settings) -> None:
    if settings.database_url is not None:
        raise BackupRefused("DATABASE_URL is set: back that database up with its own tools (docs/backup.md)")


def _checked(folder: Path, held: MasterKeys) -> Manifest:
    """Returns the manifest of the folder's backup, after a check of the dump's digest and of the master key.

    Raises:
        BackupRefused: a file is missing or was changed, or this installation lacks the backup's master key.
    """
    try:
        manifest = Manifest(**json.loads((folder / MANIFEST).read_text()))
        digest = _digest(folder / DUMP)
    except (OSError, TypeError, ValueError) as error:
        reason = f"{MANIFEST} cannot be read"
        if isinstance(error, OSError):
            reason = f"{Path(error.filename or folder).name}: {error.strerror}"
        raise BackupRefused(f"no backup in {folder}: {reason}") from None
    if digest != manifest.sha256:
        raise BackupRefused(f"{folder / DUMP} is not the dump of the backup: its sha256 is {digest}")
    missing = sorted(set(manifest.master_key.split(",")) - set(held.by_fingerprint))
    if missing:
        raise BackupRefused(
            f"the master key is not the backup's, whose fingerprint is {' and '.join(missing)}: set"
            " CASEBANK_MASTER_KEY, or beside a newer one CASEBANK_MASTER_KEY_OLD, or bring its secrets.json"
        )
    return manifest


def _digest(file: Path) -> str:
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def _run(program: str, server: postgres.EmbeddedPostgres, *words: str) -> None:
    where = (f"--host={server.socket_dir}", f"--port={server.port}", "--username=postgres", "--no-password")
    done = subprocess.run(  # noqa: S603 - the bundled program, by its full path
        (str(postgres.program(program)), *where, *words), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BackupRefused(f"{program} failed: {done.stderr.strip().splitlines()[-1] if done.stderr else ''}")


async def _administer(server: postgres.EmbeddedPostgres, statement: str) -> None:
    async with one_connection(server.url("postgres")) as admin:
        await admin.execute(statement)
