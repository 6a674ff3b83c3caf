"""Tells which database a command uses, and reads the file of settings that the command is given."""

import os
from pathlib import Path
from urllib.parse import unquote

from app.postgres.pools import dsn
from app.settings import Settings
from app.terminal.plain_console import notice
from app.wrong_settings import WrongSettings


def read_environment(file: Path) -> None:
    """Sets each variable of a file of `NAME=value` lines that the environment does not set already."""
    for line in file.read_text(encoding="utf-8-sig").splitlines():
        name, is_set, value = line.strip().removeprefix("export ").partition("=")
        if is_set and not name.startswith("#"):
            plain = value.strip()
            if len(plain) > 1 and plain[0] == plain[-1] and plain[0] in "\"'":
                plain = plain[1:-1]
            os.environ.setdefault(name.strip(), plain)


def database_of(settings: Settings) -> str:
    """Returns the database in words, without its login's password.

    Raises:
        WrongSettings: the URL is not of a Postgres.
    """
    if settings.database_url is None:
        return f"embedded, in {settings.home} (DATABASE_URL is not set)"
    try:
        address = dsn(settings.database_url).partition("://")[2].partition("?")[0]
    except ValueError as error:
        raise WrongSettings(str(error)) from None
    place, _, name = address.rpartition("@")[2].partition("/")
    return f"{unquote(name)} at {place or 'this machine'} (DATABASE_URL)"


def tell_database(settings: Settings) -> None:
    """Prints the database on standard error, for a job that was started without the variables of the service."""
    notice(f"database: {database_of(settings)}", style="dim")
