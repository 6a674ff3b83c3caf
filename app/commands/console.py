"""``casebank console``: prints a link that signs in, and opens it in a browser."""

import webbrowser
from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import urlencode

import httpx
import typer

from app.commands.tokens import OPERATOR_NAME
from app.console.page import ROOT
from app.console.visits import Link, VisitSeal
from app.settings import Settings
from app.terminal.command_line import MaybeUser, checked
from app.terminal.plain_console import notice


def console(
    user: MaybeUser = None,
    operator: Annotated[
        bool, typer.Option("--operator", help="sign in as the operator, who sees the numbers of the installation")
    ] = False,
    address: Annotated[str, typer.Option("--at", help="address of the service")] = "http://127.0.0.1:8700",
    opens: Annotated[
        bool, typer.Option("--open/--no-open", help="open the link in a browser, or only print it")
    ] = True,
) -> None:
    """Print a link that signs in to the console, once and within two minutes, and open it in a browser."""
    if user is None and not operator:
        raise typer.BadParameter("name a user, or give --operator", param_hint="--user")
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL:
        url = httpx.URL()
    if url.scheme not in {"http", "https"} or not url.host:
        raise typer.BadParameter("an address begins with http:// or https://, and names a host", param_hint="--at")
    settings = Settings()
    name = checked(OPERATOR_NAME if user is None else user)
    made = link(settings, address, name, is_operator=operator)
    typer.echo(made)
    try:
        httpx.get(f"{address.rstrip('/')}/healthz", timeout=1, verify=False).raise_for_status()  # noqa: S501 - asks only
    except httpx.HTTPError:
        notice(f"nothing answers at {address}: start `casebank serve`, or name another with --at")
    if opens:
        open_privately(settings, made)


def link(settings: Settings, address: str, user_sub: str, *, is_operator: bool) -> str:
    """Returns a link that signs the user in once, within two minutes.

    Raises:
        NoMasterKey: no key is configured to seal the link.
    """
    made = Link(user_sub=user_sub, made_at=datetime.now(UTC), is_operator=is_operator)
    return f"{address.rstrip('/')}{ROOT}/link?{urlencode({'code': VisitSeal(settings).seal(made)})}"


def open_privately(settings: Settings, address: str) -> bool:
    """Opens the address in a browser through a file that only its owner can read; returns False without a browser.

    Everybody on the machine can see the arguments of a started browser, but not the content of the file.
    """
    settings.make_home()
    page = settings.home / "console.html"
    page.unlink(missing_ok=True)
    page.touch(mode=0o600)
    page.write_text(f'<!doctype html><meta http-equiv="refresh" content="0; url={address}">\n', encoding="utf-8")
    return webbrowser.open(page.as_uri())
