"""Repairs of CREATE, ALTER, DROP and of names: each returns the repaired script, or None if it does not apply."""

import re
from dataclasses import replace

from app.demo.operator.catalog import WORK_SCHEMA, Catalog, sample_of
from app.demo.operator.script import RepairScript, target

_ADD_COLUMN = re.compile(r"(ALTER TABLE \S+ ADD COLUMN (?:IF NOT EXISTS )?)(\S+)( .*)?$")
_NAMED = re.compile(r"\b(TABLE|INTO|UPDATE|FROM|COLUMN|JOIN|VIEW)(\s+)(?!IF\b)([A-Za-z_]\w*)(?![\w.])")
_NUMBER_NAMES = ("age", "count", "total", "quantity", "number", "score", "level")


def append_type(script: RepairScript, _: Catalog) -> RepairScript | None:
    """Adds a type, guessed from the name, to a new column without one."""
    match = _ADD_COLUMN.match(script.main)
    if match is None or match[3]:
        return None
    name = match[2].strip('"')
    guess = "integer" if name.endswith(_NUMBER_NAMES) else "date" if name.endswith(("_date", "_on")) else "text"
    return script.rewrite(f"{script.main} {guess}")


def catalog_case(script: RepairScript, catalog: Catalog) -> RepairScript | None:
    """Spells and quotes the statement's mixed-case names as the database's catalog does."""
    mixed = {
        name.lower(): name for name in (*catalog.tables, *(c.name for c in catalog.columns)) if name != name.lower()
    }

    def spell(match: re.Match[str]) -> str:
        name = mixed.get(match[0].strip('"').lower())
        return match[0] if name is None else f'"{name}"'

    return script.rewrite(re.sub(r"\"\w+\"|'[^']*'|\w+", spell, script.main))


def qualify_schema(script: RepairScript, catalog: Catalog) -> RepairScript | None:
    """Adds the name of the schema to each table that is in another schema."""
    homes = {column.table: column.schema for column in catalog.columns if column.schema != WORK_SCHEMA}

    def qualify(match: re.Match[str]) -> str:
        home = homes.get(match[3].lower())
        return match[0] if home is None else f"{match[1]}{match[2]}{home}.{match[3]}"

    return script.rewrite(_NAMED.sub(qualify, script.main))


def default_new_column(script: RepairScript, _: Catalog) -> RepairScript | None:
    """Adds a default to a new column."""
    match = _ADD_COLUMN.match(script.main)
    if match is None or " DEFAULT " in script.main:
        return None
    type_name = (match[3] or " text").split()[0]
    return script.rewrite(f"{script.main} DEFAULT {sample_of(type_name)}")


def backfill_nulls(script: RepairScript, catalog: Catalog) -> RepairScript | None:
    """Fills missing values before the column becomes NOT NULL."""
    match = re.match(r"ALTER TABLE (\S+) ALTER COLUMN (\S+) SET NOT NULL$", script.main)
    if match is None:
        return None
    template = "UPDATE {table} SET {column} = {value} WHERE {column} IS NULL"
    samples = {column.name: column.sample for column in catalog.of(match[1])}
    value = samples.get(match[2].strip('"'), "''")
    return script.first(template.format(table=match[1], column=match[2], value=value))


def recreate_views(script: RepairScript, catalog: Catalog) -> RepairScript | None:
    """Drops views over an altered table first and creates them again afterwards."""
    match = re.match(r"ALTER TABLE (\S+) ", script.main)
    views = [view for view in catalog.views if match and re.search(rf"\b{re.escape(match[1])}\b", view[1])]
    if not views:
        return None
    after = tuple(f"CREATE VIEW {name} AS {definition.strip().removesuffix(';')}" for name, definition in views)
    return replace(script, before=script.before + tuple(f"DROP VIEW {name}" for name, _ in views), after=after)


def extend_group_by(script: RepairScript, _: Catalog) -> RepairScript | None:
    """Adds plain columns of the SELECT list to the GROUP BY."""
    match = re.search(r"SELECT (.+?) FROM .* GROUP BY (.+)$", script.main)
    if match is None:
        return None
    grouped = match[2].split(", ")
    plain = [item for item in match[1].split(", ") if "(" not in item and item not in grouped]
    return script.rewrite(f"{script.main}{''.join(f', {item}' for item in plain)}")


def qualify_columns(script: RepairScript, catalog: Catalog) -> RepairScript | None:
    """Prefixes bare columns in a join's SELECT list with its table; None: none is bare, or no table is sure."""
    match = re.search(r"SELECT (.+?) FROM (\w+) JOIN (\w+)", script.main)
    if match is None:
        return None
    owner = {column.name: table for table in (match[3], match[2]) for column in catalog.of(table)}
    items = [f"{owner[item]}.{item}" if item in owner else item for item in match[1].split(", ")]
    return script.rewrite(script.main.replace(match[1], ", ".join(items), 1))


def outside_transaction(script: RepairScript, _: Catalog) -> RepairScript | None:
    """Runs and commits the statements one by one."""
    return None if script.autocommit else replace(script, autocommit=True)


def retry(script: RepairScript, _: Catalog) -> RepairScript | None:
    """Retries the same script, in case the error was temporary."""
    return script


def analyze_first(script: RepairScript, catalog: Catalog) -> RepairScript | None:
    """Refreshes the planner's statistics first."""
    table = target(script, catalog)
    return script.first(f"ANALYZE {table}") if table else None


def lock_first(script: RepairScript, catalog: Catalog) -> RepairScript | None:
    """Locks the table first."""
    table = target(script, catalog)
    return script.first(f"LOCK TABLE {table}") if table and not script.autocommit else None
