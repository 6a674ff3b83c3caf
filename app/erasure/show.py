"""Prints receipts on a terminal, and checks the signature of a receipt in a file."""

import json
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from app.settings import Settings
from writer.rights.receipt import is_signed
from writer.rights.signature import Signer, read, verified

WIDTH = 100
"""Width of the tables in characters, so that a digest has a line of its own on any terminal."""


def print_receipt(console: Console, receipt: dict[str, Any], *, as_json: bool) -> None:
    """Prints the receipt, as tables or as the signed JSON."""
    console.print(json.dumps(receipt) if as_json else as_table(receipt), soft_wrap=as_json)


def as_table(receipt: dict[str, Any]) -> Group:
    """Returns the erased rows by table, and the state of each place."""
    if not is_signed(receipt):
        return Group(Text(f"an erasure that broke off, or of an older version: repeat the purge\n{receipt}"))
    rows = Table(title="Erasure receipt", min_width=WIDTH)
    rows.add_column("table")
    rows.add_column("rows erased", justify="right")
    rows.add_column("rows left", justify="right")
    for table, count in receipt["rows"].items():
        rows.add_row(table, str(count), str(receipt["residue"][table]))
    places = Table(min_width=WIDTH)
    for name in ("place", "", "what", "until"):
        places.add_column(name, overflow="fold")
    for place in receipt["places"]:
        places.add_row(place["place"], place["state"], place["what"], place.get("until", ""))
    foot = f"sha256 {receipt['user_sha256']}\n{receipt['erased_at']}, {receipt['keys_destroyed']} key destroyed"
    return Group(rows, places, Text(f"{foot}\nsigned by {receipt['signature']['public_key']}"))


def check(settings: Settings, receipt: str) -> str:
    """Returns the signer of the receipt, and whether that is this installation.

    Raises:
        SignatureBroken: the receipt was changed after its signature, or has none.
    """
    signer = verified(read(receipt))
    has_key = settings.master_key is not None or (settings.home / "secrets.json").exists()  # no key is made up here
    if has_key and signer == Signer.of(settings.master_key_bytes).public_key:
        return f"signed by this installation, {signer}"
    return f"signed by {signer}, which is not this installation's key: compare it with the one that you noted"
