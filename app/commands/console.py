"""``casebank console``: a link that signs in, on the screen and in a browser."""

from typing import Annotated

import typer

from app.commands.tokens import OPERATOR_NAME
from app.console.command import link, open_privately
from app.settings import Settings
from app.terminal.command_line import MaybeUser, checked


def console(
    user: MaybeUser = None,
    operator: Annotated[bool, typer.Option("--operator", help="show the numbers of the installation")] = False,
    address: Annotated[str, typer.Option("--at", help="where the service is reached")] = "http://127.0.0.1:8700",
    opens: Annotated[bool, typer.Option("--open/--no-open", help="open it in a browser")] = True,
) -> None:
    """Print a link that signs in to the console once, within two minutes, and open it in a browser."""
    if user is None and not operator:
        raise typer.BadParameter("whose memory?", param_hint="--user")
    settings = Settings()
    name = checked(OPERATOR_NAME if user is None else user)
    made = link(settings, address, name, is_operator=operator)
    typer.echo(made)
    if opens:
        open_privately(settings, made)
