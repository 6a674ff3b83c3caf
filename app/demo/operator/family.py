"""A family of database tasks: text with holes, which `tasks` fills."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Family:
    """One kind of task. `solution` is the chain of repairs that reaches the goal; the operator never sees it."""

    key: str
    sqlstate: str
    naive: str
    goal: str
    solution: tuple[str, ...]
    wordings: tuple[str, ...]
    extra: str = ""
    first: tuple[Mapping[str, str], ...] = field(default=(), repr=False)  # names of the first variations


HAS_COLUMN = "EXISTS (SELECT 1 FROM information_schema.columns WHERE table_schema = 'work' AND table_name = '{t}' AND "
"""Beginning of a goal: the table has a column, which the rest describes."""
HAS_ROW = "EXISTS (SELECT 1 FROM {t} WHERE code = '{code}' AND "
"""Beginning of a goal: the table has the new row, which the rest describes."""
A1_IS = "(SELECT {c} FROM {t} WHERE code = 'A1') = '{word}'"
"""Goal: the row A1 has the new value."""
