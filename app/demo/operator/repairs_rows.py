"""Repairs of INSERT, UPDATE and DELETE: each returns the repaired script, or None if it does not apply."""

import re
from dataclasses import replace

from app.demo.operator.catalog import Catalog
from app.demo.operator.script import RepairScript, parse_insert, target

_QUOTED = re.compile(r"'([^']*)'")
_ROW_WORDS = ("INSERT", "UPDATE", "DELETE")


def parent_rows_first(script: RepairScript, catalog: Catalog) -> RepairScript | None:
    """Inserts the parent rows of an INSERT first."""
    insert = parse_insert(script)
    if insert is None:
        return None
    template = "INSERT INTO {parent} ({key}) VALUES ({value}) ON CONFLICT DO NOTHING"
    parents = [
        template.format(parent=parent, key=key, value=row[insert.columns.index(column)])
        for child, column, parent, key in catalog.foreign_keys
        if child == insert.table and column in insert.columns
        for row in insert.rows
    ]
    return script.first(*parents)


def child_rows_first(script: RepairScript, catalog: Catalog) -> RepairScript | None:
    """Deletes the rows that refer to a deleted row first."""
    template = "DELETE FROM {child} WHERE {column} IN (SELECT {key} FROM {parent} WHERE {condition})"
    return _of_each_child(template, script, catalog)


def move_child_rows(script: RepairScript, catalog: Catalog) -> RepairScript | None:
    """Moves the rows that refer to a deleted row to the first remaining row."""
    template = (
        "UPDATE {child} SET {column} = (SELECT min({key}) FROM {parent} WHERE NOT ({condition}))"
        " WHERE {column} IN (SELECT {key} FROM {parent} WHERE {condition})"
    )
    return _of_each_child(template, script, catalog)


def _of_each_child(template: str, script: RepairScript, catalog: Catalog) -> RepairScript | None:
    """Begins with a statement for each table that refers to the one of a DELETE."""
    match = re.match(r"DELETE FROM (\S+) WHERE (.+)$", script.main)
    if match is None:
        return None
    statements = [
        template.format(child=child, column=column, key=key, parent=parent, condition=match[2])
        for child, column, parent, key in catalog.foreign_keys
        if parent == match[1]
    ]
    return script.first(*statements)


def fill_required(script: RepairScript, catalog: Catalog) -> RepairScript | None:
    """Adds a value to the INSERT for every NOT NULL column without a default."""
    insert = parse_insert(script)
    if insert is None:
        return None
    missing = [
        column
        for column in catalog.of(insert.table)
        if column.not_null and not column.has_default and column.name not in insert.columns
    ]
    names, values = tuple(column.name for column in missing), tuple(column.sample for column in missing)
    wider = replace(insert, columns=insert.columns + names, rows=tuple(row + values for row in insert.rows))
    return script.rewrite(str(wider))


def update_conflict(script: RepairScript, catalog: Catalog) -> RepairScript | None:
    """Updates rows that exist already."""
    insert = parse_insert(script)
    if insert is None or insert.tail:
        return None
    keys = [column for table, column in catalog.uniques if table == insert.table and column in insert.columns]
    if not keys:
        return None
    changes = ", ".join(f"{column} = excluded.{column}" for column in insert.columns if column != keys[0])
    return script.rewrite(f"{script.main} ON CONFLICT ({keys[0]}) DO UPDATE SET {changes}")


def advance_sequence(script: RepairScript, catalog: Catalog) -> RepairScript | None:
    """Advances the table's sequence past its largest key before the INSERT."""
    insert = parse_insert(script)
    template = "SELECT setval('{sequence}', (SELECT max({column}) FROM {table}))"
    moves = [
        template.format(sequence=sequence, column=column, table=table)
        for sequence, table, column in catalog.sequences
        if insert is not None and table == insert.table
    ]
    return script.first(*moves)


def add_enum_label(script: RepairScript, catalog: Catalog) -> RepairScript | None:
    """Adds a word assigned to an enum column to its labels."""
    types = {column.name: column.type for column in catalog.columns}
    additions = [
        f"ALTER TYPE {types[name]} ADD VALUE IF NOT EXISTS '{word}'"
        for name, word in re.findall(r"(\w+) = '(\w+)'", script.main)
        if word not in catalog.enums.get(types.get(name, ""), (word,))
    ]
    return script.first(*additions)


def single_quotes(script: RepairScript, catalog: Catalog) -> RepairScript | None:
    """Turns double-quoted words that are not in the catalog into string literals."""
    known = {*catalog.tables, *(column.name for column in catalog.columns)}

    def requote(match: re.Match[str]) -> str:
        return match[0] if match[1] in known else f"'{match[1]}'"

    is_row_statement = script.main.startswith(_ROW_WORDS)
    return script.rewrite(re.sub(r'"([^"]*)"', requote, script.main)) if is_row_statement else None


def widen_columns(script: RepairScript, catalog: Catalog) -> RepairScript | None:
    """Removes the length limit of the statement's columns first."""
    table = target(script, catalog)
    if table is None or not script.main.startswith(("INSERT", "UPDATE")):
        return None
    words = set(re.findall(r"\w+", _QUOTED.sub("", script.main)))
    limited = [column for column in catalog.of(table) if column.type.startswith("character varying")]
    changes = [f'ALTER TABLE {table} ALTER COLUMN "{c.name}" TYPE text' for c in limited if c.name in words]
    return script.first(*changes)


def cut_values(script: RepairScript, catalog: Catalog) -> RepairScript | None:
    """Cuts values of an INSERT to the length of their columns."""
    insert = parse_insert(script)
    if insert is None:
        return None
    types = (
        (column.name, re.fullmatch(r"character varying\((\d+)\)", column.type)) for column in catalog.of(insert.table)
    )
    limits = {name: int(limited[1]) for name, limited in types if limited}

    def cut(literal: str, name: str) -> str:
        is_limited = name in limits and literal.startswith("'")
        return f"'{literal[1:-1][: limits[name]]}'" if is_limited else literal

    rows = tuple(
        tuple(cut(value, name) for name, value in zip(insert.columns, row, strict=True)) for row in insert.rows
    )
    return script.rewrite(str(replace(insert, rows=rows)))
