"""``casebank rotate-key``: wraps every user's key with another master key."""

import json
from typing import Annotated

import typer
from tqdm import tqdm

from app.terminal.command_line import parts
from app.terminal.plain_console import out
from app.terminal.run_to_end import run_to_end as run
from writer.privacy.rotation import Rotation, rotate


def rotate_key(
    yes: Annotated[bool, typer.Option("--yes", help="do not ask for confirmation")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the receipt as JSON")] = False,
) -> None:
    """Wrap every user's key with CASEBANK_MASTER_KEY in place of CASEBANK_MASTER_KEY_OLD; may be repeated."""
    if not yes:
        typer.confirm("Does every service, worker and job hold both keys by now?", abort=True, err=True)

    async def work() -> Rotation:
        async with parts() as runtime:
            with tqdm(unit=" users", desc="rotate-key", disable=None) as bar:
                return await rotate(runtime.database, runtime.keyring.masters, bar.update)

    done = run(work())
    if as_json:
        typer.echo(json.dumps(done.as_dict()))
    else:
        if not done.now:
            out.print("every key is wrapped already; the receipt of that rotation:")
        for name, value in done.as_dict().items():
            text = ", ".join(value) if isinstance(value, list) else value
            out.print(f"{name.replace('_', ' ')}: {text}")
        old = "CASEBANK_MASTER_KEY_OLD"
        unopened = f"{done.left} users' keys do not open: add the key that wrapped them to {old}, and repeat"
        out.print(unopened if done.left else f"{old} is only needed for earlier backups now")
    if done.left:
        raise typer.Exit(1)
