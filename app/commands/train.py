"""``casebank train``: passes its arguments to a process of its own, ``python -m app.training``."""

import subprocess
from collections.abc import Sequence

import typer

from app.processes.own_module import OWN_MODULE

commands = typer.Typer(add_completion=False)


@commands.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []})
def train(context: typer.Context) -> None:
    """Train policies from the logs, judge those on trial and watch those that serve (--help for more)."""
    # a process of its own: training takes a processor for as long as it runs
    words, user = _without_name(context.args)
    command = [*OWN_MODULE, "app.training", *words]
    raise typer.Exit(subprocess.run(command, check=False, text=True, input=user).returncode)  # noqa: S603


def _without_name(words: Sequence[str]) -> tuple[list[str], str | None]:
    """Returns the words with ``-`` in place of the user's name, and the name, or None where there is none to hide."""
    kept, user, is_user_next = [], None, False
    for word in words:
        if is_user_next or word.startswith("--user="):
            user, word = word.removeprefix("--user="), "-" if is_user_next else "--user=-"  # noqa: PLW2901
        is_user_next = word == "--user"
        kept.append(word)
    return kept, None if user in {None, "-"} else f"{user}\n"
