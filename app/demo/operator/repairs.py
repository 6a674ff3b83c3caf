"""The operator's fixed list of generic repairs. It is all that the operator knows about SQL."""

import random
from dataclasses import dataclass

from app.demo.operator import repairs_rows as rows
from app.demo.operator import repairs_shape as shape
from app.demo.operator.catalog import Catalog
from app.demo.operator.script import Edit, Script


@dataclass(frozen=True)
class Repair:
    """A generic change of a statement; plans name it by its title."""

    key: str
    title: str
    edit: Edit


REPAIRS = (
    Repair("append_type", "append a data type to ADD COLUMN", shape.append_type),
    Repair("quote_identifiers", "double-quote the identifiers", shape.quote_identifiers),
    Repair("catalog_case", "spell mixed-case names as the catalog does, in quotes", shape.catalog_case),
    Repair("qualify_schema", "put the schema in front of the table", shape.qualify_schema),
    Repair("qualify_columns", "qualify ambiguous columns with their table", shape.qualify_columns),
    Repair("extend_group_by", "add the missing columns to GROUP BY", shape.extend_group_by),
    Repair("parent_rows_first", "insert the parent row first", rows.parent_rows_first),
    Repair("child_rows_first", "delete the rows that refer to it first", rows.child_rows_first),
    Repair("move_child_rows", "hand the rows that refer to it to another parent first", rows.move_child_rows),
    Repair("fill_required", "give every NOT NULL column a value", rows.fill_required),
    Repair("default_new_column", "give the new column a DEFAULT", shape.default_new_column),
    Repair("backfill_nulls", "fill the NULLs before SET NOT NULL", shape.backfill_nulls),
    Repair("delete_empty_rows", "delete the rows without a value before SET NOT NULL", shape.delete_empty_rows),
    Repair("ignore_conflict", "add ON CONFLICT DO NOTHING", rows.ignore_conflict),
    Repair("update_conflict", "add ON CONFLICT DO UPDATE", rows.update_conflict),
    Repair("advance_sequence", "advance the sequence past the largest key", rows.advance_sequence),
    Repair("delete_duplicates", "delete the duplicate rows first", shape.delete_duplicates),
    Repair("number_duplicates", "number the duplicate values first", shape.number_duplicates),
    Repair("using_cast", "add a USING cast to ALTER TYPE", shape.using_cast),
    Repair("drop_default", "drop the column default before ALTER TYPE", shape.drop_default),
    Repair("recreate_views", "drop the views over the table and recreate them after", shape.recreate_views),
    Repair("add_enum_label", "add the value to the enum first", rows.add_enum_label),
    Repair("digits_only", "keep only the digits of a numeric literal", rows.digits_only),
    Repair("single_quotes", "put string literals in single quotes", rows.single_quotes),
    Repair("widen_columns", "widen the length-limited columns first", rows.widen_columns),
    Repair("cut_values", "cut the values to the length of their columns", rows.cut_values),
    Repair("create_schema", "create the schema first", shape.create_schema),
    Repair("cascade", "add CASCADE to the DROP", shape.cascade),
    Repair("not_valid", "add the constraint as NOT VALID", shape.not_valid),
    Repair("unique_target", "make the referenced column unique first", shape.unique_target),
    Repair("outside_transaction", "run outside a transaction block", shape.outside_transaction),
    Repair("if_exists", "add IF EXISTS or IF NOT EXISTS", shape.if_exists),
    Repair("retry", "retry the statement unchanged", shape.retry),
    Repair("analyze_first", "run ANALYZE on the table first", shape.analyze_first),
    Repair("lock_first", "lock the table first", shape.lock_first),
    Repair("raise_timeouts", "raise the statement timeout first", shape.raise_timeouts),
)


def shuffled(seed: str) -> list[Repair]:
    """Returns the repairs that the operator tries, shuffled by the seed: all arms of the demo try them in one order."""
    order = list(REPAIRS)
    random.Random(seed).shuffle(order)
    return order


def apply_chain(script: Script, chain: tuple[Repair, ...], catalog: Catalog) -> Script | None:
    """Returns the script after each repair of a chain in order; None if one does not apply."""
    current: Script | None = script
    for repair in chain:
        current = repair.edit(current, catalog) if current is not None else None
    return current


def named_in(line: str) -> Repair | None:
    """Returns the repair named in a line of a plan, or None."""
    return next((repair for repair in REPAIRS if repair.title in line), None)
