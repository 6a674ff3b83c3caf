"""The console of the commands: it prints every text as it is."""

from rich.console import Console


def plain_console(*, stderr: bool = False, soft_wrap: bool = False, style: str | None = None) -> Console:
    """Returns a console that reads no markup, emoji codes or highlights in a text, cells of tables included.

    With markup, "[plots]" in a remedy or a user's name in brackets would be swallowed as a style.
    """
    return Console(stderr=stderr, soft_wrap=soft_wrap, style=style, markup=False, emoji=False, highlight=False)
