"""``casebank console``: prints a link that signs in, and opens it in a browser."""

from typing import Annotated

import typer

from app.commands.tokens import OPERATOR_NAME
from app.console.command import link, open_privately
from app.settings import Settings
from app.terminal.command_line import MaybeUser, checked


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
    settings = Settings()
    name = checked(OPERATOR_NAME if user is None else user)
    made = link(settings, address, name, is_operator=operator)
    typer.echo(made)
    if opens:
        open_privately(settings, made)
