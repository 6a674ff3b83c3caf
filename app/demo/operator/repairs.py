"""The operator's fixed list of generic repairs, read from ``repairs.toml``. It is all that it knows about SQL."""

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from app.demo.operator import repairs_rows as rows
from app.demo.operator import repairs_shape as shape
from app.demo.operator.catalog import Catalog
from app.demo.operator.script import Edit, RepairScript
from retrieval.patterns import read


@dataclass(frozen=True)
class Repair:
    """A generic change of a statement; plans name it by its title."""

    key: str
    title: str
    edit: Edit


def _edit(told: Mapping[str, Any], script: RepairScript, _: Catalog) -> RepairScript | None:
    if "first" in told:
        match = re.search(told["on"], script.main)
        return script.first(match.expand(told["first"])) if match else None
    main = script.main
    for pattern, replacement in told["substitute"]:
        main = re.sub(pattern, replacement, main)
    return script.rewrite(main)


REPAIRS = tuple(
    Repair(key, told["title"], getattr(rows, key, None) or getattr(shape, key, None) or partial(_edit, told))
    for told in read("app.demo.operator", "repairs.toml")["repairs"]
    for key in [told["key"]]
)


def shuffled(seed: str) -> list[Repair]:
    """Returns the repairs that the operator tries, shuffled by the seed: all arms of the demo try them in one order."""
    order = list(REPAIRS)
    random.Random(seed).shuffle(order)
    return order


def apply_chain(script: RepairScript, chain: tuple[Repair, ...], catalog: Catalog) -> RepairScript | None:
    """Returns the script after each repair of a chain in order; None if one does not apply."""
    current: RepairScript | None = script
    for repair in chain:
        current = repair.edit(current, catalog) if current is not None else None
    return current


def named_in(line: str) -> Repair | None:
    """Returns the repair named in a line of a plan, or None."""
    return next((repair for repair in REPAIRS if repair.title in line), None)
