"""The demo's houses without their database: an operator that finds the right repairs of each statement.

A run begins with the statement as it stands, whose error is the one that Postgres gives, and with a look at the
catalog; then come the repairs, a useless one now and then. Half-way the house changes its conventions. The demo's
planted runs are left out.
"""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from app.demo.operator.families import CONVENTIONS, FAMILIES, Task
from app.demo.operator.house import USELESS, House
from app.demo.operator.repairs import REPAIRS
from bench.replay.loops import BUDGET, Plan
from bench.replay.runs import Call, Run, Stream

RUNS = 160
A_DAY = 8
"""Number of runs a day."""
USELESS_FIRST, OTHER_WAY_FIRST = 0.15, 0.15
"""Shares of runs that begin with a useless repair, and of a house's conventions begun in the other way."""
_WAYS = {key: [way.solution for way in ways] for key, ways in CONVENTIONS.items()}

_TABLE = r"INSERT INTO (\w+) .*"
_DUPLICATE = r'duplicate key value violates unique constraint "\1_code_key"\nDETAIL:  Key (code)=(A1) already exists.'
_REFERRED = (
    r'update or delete on table "\1" violates foreign key constraint "\3_\4_id_fkey" on table "\3"\n'
    r'DETAIL:  Key (id)=(\2) is still referenced from table "\3".'
)
_DELETE = r"DELETE FROM (\w+) WHERE id = (\d+).*CREATE TABLE (\w+) \(id serial PRIMARY KEY, (\w+)_id"
_NULLS = (r"ALTER TABLE (\w+) \w+ COLUMN (\w+)", r'column "\2" of relation "\1" contains null values')
_UNIQUE = (
    r"INDEX (\w+) ON \w+ \((\w+)\)",
    r'could not create unique index "\1"\nDETAIL:  Key (\2)=(alpha) is duplicated.',
)
_MISSING_TABLE = (r"UPDATE (\w+)", r'relation "\1" does not exist')
ERRORS: dict[str, tuple[str, str]] = {
    "missing_type": ("", "syntax error at end of input"),
    "reserved_column": (r"COLUMN (\w+)", r'syntax error at or near "\1"'),
    "parent_missing": (
        r"INSERT INTO (\w+) \(code, (\w+)_id, \w+\) VALUES \('\w+', (\d+),.*CREATE TABLE (\w+) \(id integer",
        (
            r'insert or update on table "\1" violates foreign key constraint "\1_\2_id_fkey"\n'
            r'DETAIL:  Key (\2_id)=(\3) is not present in table "\4".'
        ),
    ),
    "children_left": (_DELETE, _REFERRED),
    "leaving_parent": (_DELETE, _REFERRED),
    "value_missing": (
        r"INSERT INTO (\w+) \(code, \w+\) VALUES \('(\w+)', '(\w+)'.*ADD COLUMN (\w+)",
        (
            r'null value in column "\4" of relation "\1" violates not-null constraint\n'
            r"DETAIL:  Failing row contains (4, 1, \3, 1, new, \2, null)."
        ),
    ),
    "new_column_required": _NULLS,
    "nulls_left": _NULLS,
    "empty_values": _NULLS,
    "some_rows_exist": (_TABLE, _DUPLICATE),
    "row_exists": (_TABLE, _DUPLICATE),
    "import_rows": (_TABLE, _DUPLICATE),
    "sequence_behind": (
        _TABLE,
        r'duplicate key value violates unique constraint "\1_pkey"\nDETAIL:  Key (id)=(1) already exists.',
    ),
    "duplicates_left": _UNIQUE,
    "shared_values": _UNIQUE,
    "type_change": (
        r"COLUMN (\w+) TYPE (\w+)",
        r'column "\1" cannot be cast automatically to type \2\nHINT:  You might need to specify "USING \1::\2".',
    ),
    "view_in_the_way": (
        r"COLUMN (\w+) TYPE.*CREATE TYPE (\w+)_status",
        (
            r"cannot alter type of a column used by a view or rule\n"
            r'DETAIL:  rule _RETURN on view \2_overview depends on column "\1"'
        ),
    ),
    "enum_label": (
        r"status = '(\w+)'.*CREATE TYPE (\w+)_status",
        r'invalid input value for enum \2_status: "\1"',
    ),
    "unit_in_number": (r"'(\d+ \w+)'\)", r'invalid input syntax for type integer: "\1"'),
    "mixed_case_table": _MISSING_TABLE,
    "other_schema": _MISSING_TABLE,
    "double_quoted_text": (r'"(\w+)"', r'column "\1" does not exist'),
    "mixed_case_column": (r"UPDATE (\w+) SET (\w+)Total", r'column "\2total" of relation "\1" does not exist'),
    "schema_missing": (r"TABLE (\w+)\.", r'schema "\1" does not exist'),
    "group_by_short": (
        r"SELECT status, (\w+), .* FROM (\w+) GROUP",
        r'column "\2.\1" must appear in the GROUP BY clause or be used in an aggregate function',
    ),
    "ambiguous_column": ("", 'column reference "id" is ambiguous'),
    "dependents_left": (
        r"DROP TABLE (\w+).*CREATE TYPE (\w+)_status",
        (
            r"cannot drop table \1 because other objects depend on it\n"
            r"DETAIL:  view \2_overview depends on table \1\n"
            r"HINT:  Use DROP ... CASCADE to drop the dependent objects too."
        ),
    ),
    "concurrent_index": ("", "CREATE INDEX CONCURRENTLY cannot run inside a transaction block"),
    "long_code": ("", "value too long for type character varying(12)"),
    "closed_books": ("", "the books of last year are closed"),
}
"""Error of each family's statement: a pattern of the statement and the layout behind it, and Postgres's message."""
_SQLSTATES = {family.key: family.sqlstate for family in (*FAMILIES, *(ways[0] for ways in CONVENTIONS.values()))}


def error_of(task: Task) -> str:
    """Returns Postgres's error for the statement of a task."""
    pattern, message = ERRORS[task.family]
    match = re.search(pattern, f"{task.naive}\n{task.setup}", re.DOTALL)
    return f"{_SQLSTATES.get(task.family, 'P0001')}: {match.expand(message) if match else message}"


def repair(key: str, output: str = "done", *, ok: bool = True) -> Call:
    """Returns the call that makes a repair."""
    return Call("repair", {"how": key}, output, ok=ok)


def houses(seed: int) -> Stream:
    """Returns the runs of the house of a seed."""
    house, rng = House(seed, RUNS), random.Random(f"{seed}:houses")
    runs = []
    for place, (task, right) in enumerate(zip(house.tasks(), house.solutions(), strict=True)):
        error = error_of(task)
        useless = [key for key in USELESS if key not in right]
        tried: Sequence[str] = ()
        if not right:
            tried = rng.sample(useless, 3)
        elif rng.random() < USELESS_FIRST:
            tried = rng.sample(useless, 1)
        wrong = [repair(key, error, ok=False) for key in tried]
        for other in _WAYS.get(task.family, []):
            if other != right and rng.random() < OTHER_WAY_FIRST:
                wrong += [repair(key, "rolled back: the check says no", ok=False) for key in other]
        calls = (
            Call("sql", {"statement": task.naive}, error, ok=False),
            Call("inspect", {}, "read", ok=True),
            *wrong,
            *(repair(key) for key in right),
        )
        runs.append(Run(task.text, calls, bool(right), place // A_DAY, task.family))
    return Stream("houses", tuple(runs), change=RUNS // 2)


@dataclass(slots=True)
class Repairing:
    """A statement under repair; the next repair of the right chain is accepted, any other changes nothing."""

    task: Task
    right: tuple[str, ...]
    done: list[Call] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Text of the task."""
        return self.task.text

    @property
    def kind(self) -> str:
        """Family of the task."""
        return self.task.family

    @property
    def budget(self) -> int:
        """Largest number of calls."""
        return BUDGET

    @property
    def error(self) -> str:
        """Error of the statement as it stands."""
        return error_of(self.task)

    @property
    def solved(self) -> bool:
        """True once all repairs of the right chain are made; a task without a solution never is."""
        return bool(self.right) and len(self.done) == len(self.right)

    def adapted(self, plan: Plan) -> Plan:
        """Returns the plan's repairs, which name nothing of the task."""
        return tuple(call for call in plan if call.tool == "repair")

    def act(self, call: Call) -> Call:
        """Makes a repair, or returns it with the statement's error."""
        right = repair(self.right[len(self.done)]) if self.right else None
        if right is None or call.input != right.input:
            return Call(call.tool, call.input, error_of(self.task), ok=False)
        self.done.append(right)
        return right

    def give_up(self) -> None:
        """Leaves all as it is: a repair that changed the error is kept."""

    def known(self) -> Sequence[Plan]:
        """Returns all repairs, one a plan."""
        return [(repair(each.key),) for each in REPAIRS]


@dataclass(frozen=True, slots=True)
class HouseWorld:
    """The demo's houses as a world, with a change of conventions half-way."""

    tasks: int = 120

    @property
    def name(self) -> str:
        """Name, for reports."""
        return "houses"

    def demonstrations(self, seed: int) -> Sequence[Run]:  # noqa: ARG002 - the protocol's
        """Returns no runs: the agent finds all by itself."""
        return ()

    def attempts(self, seed: int) -> Iterator[Repairing]:
        """Yields the tasks of a seed's house."""
        house = House(seed, self.tasks)
        for task, right in zip(house.tasks(), house.solutions(), strict=True):
            yield Repairing(task, right)
