"""Backup and restore of the embedded database: one dump with a manifest beside it, and no master key.

A dump is as secret as the database. What is sealed in it opens only with the master key, which is to be kept apart.
Erasures win over backups: what was erased after a backup was made is erased again while that backup is restored.
"""

import hashlib
import json
import os
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import asyncpg
from sqlalchemy.engine import make_url

from app import postgres
from app.db import service_database
from app.migrate import migrate
from app.settings import Settings
from retrieval.schema import USER_TABLES
from writer.rights.erase import erase

DUMP, MANIFEST = "casebank.dump", "manifest.json"
BANK, RESTORED, REPLACED = "casebank", "casebank_restored", "casebank_replaced"
_PORTION_BYTES = 1 << 20


class BackupRefused(ValueError):
    """Nothing was backed up or restored; the text says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup is, as it stands beside the dump.

    Attributes:
        casebank: version that made it.
        revision: of the schema.
        created_at: ISO 8601, UTC.
        sha256: of the dump, in hex.
        master_key: fingerprint of the key that opens what is sealed; see `fingerprint`.
    """

    casebank: str
    revision: str
    created_at: str
    sha256: str
    master_key: str


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore brought back, and whom it erased again."""

    manifest: Manifest
    users: int
    erased_again: int


def fingerprint(master_key: bytes) -> str:
    """Returns 16 hex characters by which a master key is known, and from which it cannot be found."""
    return hashlib.sha256(b"casebank master key\0" + master_key).hexdigest()[:16]


async def backup(settings: Settings, folder: Path) -> Manifest:
    """Writes a dump of the embedded database and its manifest into a new folder, while the service may go on.

    Raises:
        BackupRefused: the folder is not empty, there is no bank, or the database is not the embedded one.
    """
    _refuse_external(settings)
    with postgres.running(settings.home) as server:
        if await _value(server.url(), "SELECT to_regclass('alembic_version')") is None:
            raise BackupRefused(f"there is no bank in {settings.home} to back up")
        revision = str(await _value(server.url(), "SELECT version_num FROM alembic_version"))
        draft = _draft(folder)
        _run("pg_dump", server, "--format=custom", f"--file={draft}", BANK)
    manifest = Manifest(
        casebank=version("casebank"),
        revision=revision,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        sha256=_digest(draft),
        master_key=fingerprint(settings.master_key_bytes),
    )
    draft.rename(folder / DUMP)
    _write_private(folder / MANIFEST, json.dumps(asdict(manifest), indent=2) + "\n")
    return manifest


async def restore(settings: Settings, folder: Path, receipts: Iterable[Path], *, replace: bool) -> Restored:
    """Puts a backup in the place of the bank, less everybody who was erased since.

    Args:
        settings: of the installation; its master key must be the backup's.
        folder: as `backup` left it.
        receipts: of erasures that this installation does not know of, as ``casebank purge --json`` prints them.
        replace: whether a bank that holds anything may be replaced; it is gone afterwards.

    Raises:
        BackupRefused: nothing was changed.
    """
    _refuse_external(settings)
    manifest = _checked(settings, folder)
    erased = dict(_receipt(path) for path in receipts)
    with postgres.running(settings.home) as server:
        url = server.url()
        await migrate(url, pgvector=settings.pgvector)  # makes the roles, too, which no dump carries
        await _refuse_in_use(url)
        if not replace and await _users(url):
            raise BackupRefused("the bank is not empty: back it up, and restore with --replace")
        erased |= await _tombstones(url)
        admin = server.url("postgres")
        await _execute(admin, f"DROP DATABASE IF EXISTS {RESTORED}", f"CREATE DATABASE {RESTORED}")
        _run("pg_restore", server, "--exit-on-error", f"--dbname={RESTORED}", str(folder / DUMP))
        restored = server.url(RESTORED)
        await migrate(restored, pgvector=settings.pgvector)
        again = await _erase_again(restored, erased)
        users = len(await _users(restored))
        # in one transaction, so that there is no moment without a bank
        swap = f"ALTER DATABASE {BANK} RENAME TO {REPLACED}; ALTER DATABASE {RESTORED} RENAME TO {BANK}"
        await _execute(admin, f"DROP DATABASE IF EXISTS {REPLACED}", swap, f"DROP DATABASE {REPLACED}")
    return Restored(manifest, users, again)


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


def _checked(settings: Settings, folder: Path) -> Manifest:
    """Returns the manifest of a whole backup that this installation's master key opens."""
    try:
        manifest = Manifest(**json.loads((folder / MANIFEST).read_text()))
        found = _digest(folder / DUMP)
    except (OSError, TypeError, ValueError) as error:
        raise BackupRefused(f"no backup in {folder}: {type(error).__name__}") from None
    if found != manifest.sha256:
        raise BackupRefused(f"{folder / DUMP} is not what was backed up: its sha256 is {found}")
    if fingerprint(settings.master_key_bytes) != manifest.master_key:
        raise BackupRefused("the master key is not the backup's: set CASEBANK_MASTER_KEY, or bring its secrets.json")
    return manifest


def _receipt(path: Path) -> tuple[str, datetime]:
    """Returns whom a receipt speaks of, by digest, and when they were erased."""
    try:
        receipt = json.loads(path.read_text())
        return str(receipt["user_sha256"]), datetime.fromisoformat(receipt["erased_at"])
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise BackupRefused(f"{path} is no receipt of `casebank purge --json`: {type(error).__name__}") from None


def _digest(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as data:
        while portion := data.read(_PORTION_BYTES):
            digest.update(portion)
    return digest.hexdigest()


def _write_private(file: Path, text: str) -> None:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        out.write(text)


def _run(program: str, server: postgres.EmbeddedPostgres, *words: str) -> None:
    where = (f"--host={server.socket_dir}", f"--port={server.port}", "--username=postgres", "--no-password")
    done = subprocess.run(  # noqa: S603 - the bundled program, by its full path
        (str(postgres.program(program)), *where, *words), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BackupRefused(f"{program} failed: {done.stderr.strip().splitlines()[-1] if done.stderr else ''}")


# The databases, as their owner


def _address(url: str) -> str:
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


async def _execute(url: str, *statements: str) -> None:
    connection = await asyncpg.connect(_address(url))
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def _rows(url: str, statement: str) -> Sequence[asyncpg.Record]:
    connection = await asyncpg.connect(_address(url))
    try:
        rows: Sequence[asyncpg.Record] = await connection.fetch(statement)
        return rows
    finally:
        await connection.close()


async def _value(url: str, statement: str) -> object:
    return (await _rows(url, statement))[0][0]


async def _refuse_in_use(url: str) -> None:
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    if await _value(url, others):
        raise BackupRefused("somebody is connected to the bank: stop the service and its workers first")


async def _users(url: str) -> list[str]:
    """Returns everybody who has a row anywhere."""
    tables = " UNION ".join(f"SELECT user_sub FROM {table.name}" for table in USER_TABLES)  # noqa: S608 - our own names
    return [row["user_sub"] for row in await _rows(url, f"{tables} ORDER BY 1") if row["user_sub"]]


async def _tombstones(url: str) -> dict[str, datetime]:
    rows = await _rows(url, "SELECT user_sub, max(erased_at) AS erased_at FROM erasures GROUP BY user_sub")
    return {row["user_sub"]: row["erased_at"] for row in rows}


async def _erase_again(url: str, erased: dict[str, datetime]) -> int:
    """Erases everybody whose erasure the dump does not know: then all that it has of them is from before it.

    Those of whom it has nothing get their tombstone all the same, for a token from before must not begin anew.
    """
    known = await _tombstones(url)
    missing = {digest for digest, at in erased.items() if digest not in known or known[digest] < at}
    names = {hashlib.sha256(name.encode()).hexdigest(): name for name in await _users(url)}
    async with service_database(url, pool_size=1) as database:
        for digest in sorted(missing & names.keys()):
            await erase(database, names[digest])
    connection = await asyncpg.connect(_address(url))
    try:
        for digest in sorted(missing - names.keys()):
            statement = "INSERT INTO erasures (user_sub, erased_at, receipt) VALUES ($1, $2, '{}')"
            await connection.execute(statement, digest, erased[digest])
    finally:
        await connection.close()
    return len(missing & names.keys())
