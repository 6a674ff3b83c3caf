"""The consoles of the commands: they print every text as it is."""

from rich.console import Console


def plain_console(*, stderr: bool = False, soft_wrap: bool = False, style: str | None = None) -> Console:
    """Returns a console that reads no markup, emoji codes or highlights in a text, cells of tables included.

    With markup, "[plots]" in a remedy or a user's name in brackets would be swallowed as a style.
    """
    return Console(stderr=stderr, soft_wrap=soft_wrap, style=style, markup=False, emoji=False, highlight=False)


out = plain_console()
"""Standard output, for the results of a command."""


def notice(text: str, style: str | None = None) -> None:
    """Prints a line on standard error, for the person who called the command."""
    plain_console(stderr=True, soft_wrap=True).print(f"casebank: {text}", style=style)
