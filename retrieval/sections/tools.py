"""Tool memory: reads the calls and failures of each tool in a profile's runs, for pages and for lines of a context.

A run counts until its case is deleted for good, even if the case was merged or pruned.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Float,
    FromClause,
    Integer,
    TableValuedAlias,
    Text,
    Uuid,
    any_,
    bindparam,
    case,
    cast,
    column,
    exists,
    func,
    literal_column,
    not_,
    or_,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY

from retrieval.database.fast_path import FastStatement, Record
from retrieval.database.parameters import AGENT_KEY, USER_SUB, may_enter, parameter
from retrieval.database.rows import Rows
from retrieval.sections.context import Block, ContextDraft, leading
from retrieval.sections.quoting import unescaped
from retrieval.tables.cases import case_tools, cases

HEADING = "Tools in these runs:\n"
FORMS = 10
FAILURES = 100
"""Largest number of pairs of a cause and its fix that are read of a tool, the most frequent first."""
SHOWN_TOOLS = 3
SHOWN_FIXES = 2
LEAST_RATE = 0.05
"""Least share of a tool's calls that failed for the tool to get a line in a context."""


def tools_of(user_sub: str, agent_key: str, limit: int) -> Rows:
    """Returns the statement for the agent's most called tools, with the numbers of their calls and errors."""
    return (
        _counts()
        .where(case_tools.c.user_sub == user_sub, case_tools.c.agent_key == agent_key)
        .order_by(literal_column("calls").desc(), case_tools.c.tool)
        .limit(limit)
    )


def one_tool(user_sub: str, agent_key: str, tool: str) -> Rows:
    """Returns the statement for the numbers of calls and errors of one tool; no row if it was never called."""
    return _counts().where(*_of(user_sub, agent_key, [tool]))


def forms_of(user_sub: str, agent_key: str, tools: Sequence[str], most: int = FORMS) -> Rows:
    """Returns the statement for the ``most`` forms of each tool's arguments that worked in most runs."""
    form = func.unnest(case_tools.c.forms).table_valued("form", name="forms").render_derived()
    counted = select(case_tools.c.tool, form.c.form, func.count().label("runs"))
    chosen = counted.select_from(case_tools.join(form, true())).where(*_of(user_sub, agent_key, tools))
    return _most_frequent(chosen, [form.c.form], most)


def failures_of(
    user_sub: str, agent_key: str, tools: Sequence[str], most: int = FAILURES, *, fixed: bool = False
) -> Rows:
    """Returns the statement for the failures of each tool: each cause with its fix (NULL: none), and their number.

    They are the most frequent ones, at most ``most`` a tool; with ``fixed``, of those with a fix.
    """
    failure = _failures(case_tools)
    counted = select(case_tools.c.tool, failure.c.cause, failure.c.fix, func.count().label("times"))
    chosen = counted.select_from(case_tools.join(failure, true())).where(*_of(user_sub, agent_key, tools))
    if fixed:
        chosen = chosen.where(failure.c.fix.is_not(None))
    return _most_frequent(chosen, [failure.c.cause, failure.c.fix], most)


def _most_frequent(counted: Rows, columns: Sequence[ColumnElement[str]], most: int) -> Rows:
    """Returns the statement for the ``most`` most frequent values of the columns of each tool, the first ones first."""
    place = func.row_number().over(partition_by=case_tools.c.tool, order_by=[func.count().desc(), *columns])
    ranked = counted.add_columns(place.label("place")).group_by(case_tools.c.tool, *columns).subquery()
    shown = select(*(column for column in ranked.c if column.name != "place"))
    return shown.where(ranked.c.place <= most).order_by(ranked.c.tool, ranked.c.place)


def _counts() -> Rows:
    timed = case((case_tools.c.duration_ms.is_not(None), case_tools.c.calls))
    return select(
        case_tools.c.tool,
        func.sum(case_tools.c.calls).label("calls"),
        func.sum(case_tools.c.errors).label("errors"),
        func.count().label("cases"),
        (cast(func.sum(case_tools.c.duration_ms), Float) / func.sum(timed)).label("mean_duration_ms"),
        func.max(case_tools.c.created_at).label("last_used_at"),
    ).group_by(case_tools.c.tool)


def _of(user_sub: str, agent_key: str, tools: Sequence[str]) -> tuple[ColumnElement[bool], ...]:
    return case_tools.c.user_sub == user_sub, case_tools.c.agent_key == agent_key, case_tools.c.tool.in_(tools)


def _failures(table: FromClause) -> TableValuedAlias:
    columns = column("cause", Text), column("fix", Text)
    return (
        func.jsonb_to_recordset(table.c.failures).table_valued(*columns, name="failure").render_derived(with_types=True)
    )


def _troubles() -> FastStatement[Record]:
    ids = parameter("case_ids", ARRAY(Uuid))
    chosen = case_tools.alias("chosen")
    # an array, for a join might look each row of the profile up among the chosen ones
    names = select(chosen.c.tool).distinct().where(chosen.c.user_sub == USER_SUB, chosen.c.case_id == any_(ids))
    calls, errors = (cast(func.sum(case_tools.c[name]), Integer) for name in ("calls", "errors"))
    worst = (
        select(case_tools.c.tool, calls.label("calls"), errors.label("errors"))
        .where(
            case_tools.c.user_sub == USER_SUB,
            case_tools.c.agent_key == AGENT_KEY,
            case_tools.c.tool == any_(func.array(names.scalar_subquery(), type_=ARRAY(Text))),
        )
        .group_by(case_tools.c.tool)
        .having(errors >= calls * literal_column(str(LEAST_RATE)), errors > literal_column("0"))
        .order_by(errors.desc(), case_tools.c.tool)
        .limit(literal_column(str(SHOWN_TOOLS)))
        .cte("worst")
        .prefix_with("MATERIALIZED")
    )
    run = case_tools.alias("run")
    failure = _failures(run)
    proven = exists().where(cases.c.user_sub == USER_SUB, cases.c.id == run.c.case_id, cases.c.proven)
    fixes = (
        select(failure.c.cause, failure.c.fix, func.count().label("times"))
        .select_from(run.join(failure, true()))
        .where(
            run.c.user_sub == USER_SUB,
            run.c.agent_key == AGENT_KEY,
            run.c.tool == worst.c.tool,
            failure.c.fix.is_not(None),
            or_(not_(bindparam("quarantine", type_=Boolean)), proven),
        )
        .group_by(failure.c.cause, failure.c.fix)
        .order_by(literal_column("times").desc(), failure.c.cause, failure.c.fix)
        .limit(literal_column(str(SHOWN_FIXES)))
        .lateral("fixes")
    )
    statement = (
        select(*worst.c, fixes.c.cause, fixes.c.fix)
        .select_from(worst.outerjoin(fixes, true()))
        .where(may_enter())
        .order_by(worst.c.errors.desc(), worst.c.tool, fixes.c.times.desc(), fixes.c.cause, fixes.c.fix)
    )
    return FastStatement(statement)


TROUBLES = _troubles()
"""Statement for the tools of the cases ``case_ids`` that fail most; ``quarantine``: only pairs of proven runs are read.

It returns at most SHOWN_TOOLS tools of which at least LEAST_RATE of all calls failed, the one with the most errors
first, each with its SHOWN_FIXES most frequent pairs of cause and fix; a tool without such a pair has one row with NULL.
"""


def lines(rows: Sequence[Record]) -> Iterator[str]:
    """Yields a line of a context for each tool in the rows of TROUBLES."""
    for tool, group in groupby(rows, key=lambda row: row.tool):
        pairs = list(group)
        fixes = [f"after {row.cause}, {row.fix}" for row in pairs if row.fix is not None]
        calls, errors = pairs[0].calls, pairs[0].errors
        counts = f"{calls} call{'s' * (calls != 1)}, {errors / calls:.0%} errors"
        yield "; ".join([f"Tool {tool}: {counts}", *fixes])


@dataclass(frozen=True, slots=True)
class ToolsSection:
    """Section of lines about tools of the shown runs that fail often; it stands below other sections, never alone."""

    lines: Iterable[str]

    def render(self, draft: ContextDraft) -> tuple[list[Block], None]:
        """Returns the lines up to the first that does not fit into the draft's budget.

        The second value is None, because the tokens of this section are not reported.
        """
        blocks = (Block(f"    {unescaped(line)}", HEADING) for line in self.lines)
        return leading(blocks, draft.fits) if draft.blocks else [], None
