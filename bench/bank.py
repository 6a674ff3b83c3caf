"""A bank for one benchmark: an embedded Postgres, a filled database, and two ways to read it."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path

import asyncpg
import psutil
from pydantic import SecretStr

from app.admission.admission import Admission
from app.admission.backlog import Backlog, PendingBounds
from app.admission.turns import Places, Turns
from app.postgres.migrate import migrate
from app.postgres.pools import ANY_LENGTH, service_database
from app.providers.wordllama import WordLlamaEmbedder
from app.runtime import make_admission
from app.settings import Settings
from bench.database import created
from bench.fill import AGENT, CASES_PER_USER, fill, tasks
from retrieval.database.database import Database
from retrieval.retrieve import Reader
from writer.privacy.keys import Keyring
from writer.upkeep.reseal import reseal_all

WARM_UP = 50
CLIENTS = 16
NEXT_TOKEN_S = 1e-6


@dataclass(frozen=True, slots=True)
class Bank:
    """A filled bank: read as the service reads it, and by bare asyncpg as the same role."""

    url: str
    reader: Reader
    bare: asyncpg.Connection
    users: int
    now: datetime
    admission: Admission
    """Admission with blocks of tokens as by default; it never refuses."""
    settings: Settings
    """Settings of a service on the bank."""
    home: Path
    """Folder of the database's server."""
    agent: str = AGENT
    queries: Sequence[str] = ()
    """Queries of runs that are not in the bank; empty: synthetic ones fit."""

    def asked(self, seed: int, count: int) -> list[str]:
        """Returns so many queries, of the bank's own or by the seed."""
        return list(islice(cycle(self.queries), count)) if self.queries else list(tasks(seed, count))

    def user(self, number: int) -> str:
        """Returns one of the bank's users, each number in turn."""
        return f"user-{number % self.users + 1}"


@asynccontextmanager
async def filled(
    home: Path, users: int, *, sealed: bool = False, per_user: int = CASES_PER_USER
) -> AsyncIterator[Bank]:
    """Yields a bank of ``users`` profiles with so many cases each, their words sealed or in plain."""
    url = await empty(home, f"bench_{users}")
    keyring = Keyring(os.urandom(32), seals_words=sealed)
    await fill(url, users, keyring.master, per_user)
    bare = await asyncpg.connect(url.replace("+asyncpg", ""), server_settings={"jit": "off"}, **ANY_LENGTH)
    try:
        async with service_database(url) as database:
            if sealed:
                await reseal_all(database, keyring)
                await bare.execute("VACUUM ANALYZE")
            reader = Reader(database, WordLlamaEmbedder(), explore=True, seals=keyring)
            settings = settings_of(home, url, keyring.master)
            yield Bank(url, reader, bare, users, datetime.now(UTC), endless(database), settings, home)
    finally:
        await bare.close()


def endless(database: Database) -> Admission:
    """Returns an admission that takes blocks of tokens as a service does by default, and never refuses."""
    by_default = make_admission(Settings(), database)
    quotas = {of: replace(quota, every_s=NEXT_TOKEN_S) for of, quota in by_default.quotas.items()}
    turns = Turns(Places(per_user=CLIENTS, in_all=CLIENTS))
    return replace(by_default, quotas=quotas, turns=turns, backlog=Backlog(database, PendingBounds(10**9, 10**9)))


def settings_of(home: Path, url: str, master_key: bytes) -> Settings:
    """Returns the settings of a service on the database with this master key."""
    return Settings(home=home / "service", database_url=url, master_key=SecretStr(master_key.hex()))


async def empty(home: Path, name: str) -> str:
    """Returns the URL of the migrated database of that name, made unless it is there."""
    url = await created(home, name)
    await migrate(url)
    return url


class DatabaseServer:
    """The embedded server's processes."""

    def __init__(self, home: Path) -> None:
        (found,) = home.rglob("postmaster.pid")
        self.home = home
        self._postmaster = psutil.Process(int(found.read_text().split()[0]))

    def seconds(self) -> float:
        """Returns the processor time of the server and of all its connections so far."""
        ended = self._postmaster.cpu_times()
        total: float = ended.children_user + ended.children_system
        for child in self._postmaster.children():
            with suppress(psutil.NoSuchProcess):
                times = child.cpu_times()
                total += times.user + times.system
        return total
