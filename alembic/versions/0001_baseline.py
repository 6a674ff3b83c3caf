"""Makes the schema with which the revisions of casebank begin.

The definitions are the SQL files in ``alembic/baseline``, in the order of ``FILES``: the tables with their indexes,
functions and triggers by subject, then who may see and change them, then what the planner may know of them. In a
table's definition, the text behind ``--`` on a column's line, or on the line after it, is also the column's comment in
the database; behind or after the table's first line it is the table's.

The files repeat what ``retrieval`` has as table metadata, on purpose. A revision must make the same schema in every
version to come, for the next revisions change what this one made; metadata moves on with the code, and has neither
policies nor grants, functions and triggers. ``alembic check``, which the tests call, compares the two: the tables that
all revisions make together are those of the metadata.

Where pgvector can be had, vectors are of its type; elsewhere, and with ``pgvector=off``, they are arrays, which the
service compares by itself. Its indexes need pgvector 0.8, whose scans go on until they have enough.

Revision ID: 0001_baseline
Revises:
"""

import re
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa

from alembic import op

revision = "0001_baseline"
down_revision = None
branch_labels = None
depends_on = None

FOLDER = Path(__file__).parent.parent / "baseline"
FILES = (
    "roles",
    "users",
    "decisions",
    "sessions",
    "cases",
    "runs",
    "memories",
    "checkpoints",
    "audit",
    "service",
    "search",
    "access",
    "statistics",
)

PGVECTOR = {
    "{vector}": "vector",
    "{distance}": "e.embedding <=> query_embedding",
    "{dimension}": "vector_dims(query_embedding)",
}
ARRAYS = {
    "{vector}": "real[]",
    "{distance}": """(
            SELECT 1 - sum(pair.a * pair.b) / nullif(sqrt(sum(pair.a ^ 2)) * sqrt(sum(pair.b ^ 2)), 0)
            FROM unnest(e.embedding::float8[], query_embedding::float8[]) AS pair(a, b)
        )""",
    "{dimension}": "cardinality(query_embedding)",
}


def upgrade() -> None:
    vectors = PGVECTOR if create_pgvector() else ARRAYS
    for file in FILES:
        run(file, vectors)
    if vectors is PGVECTOR and has_iterative_scan():
        run("hnsw", vectors)


def downgrade() -> None:
    # roles and the extension stay: other databases of the cluster, and other tables, may use them
    scripts = "".join(script.read_text() for script in FOLDER.iterdir())
    tables = re.findall(r"^CREATE (?:UNLOGGED )?TABLE (\w+)", scripts, re.MULTILINE)
    op.execute(f"DROP TABLE {', '.join(tables)} CASCADE")
    for function in re.findall(r"^CREATE FUNCTION (\w+)", scripts, re.MULTILINE):
        op.execute(f"DROP FUNCTION IF EXISTS {function}")  # those that take a table's row went with the table


def create_pgvector() -> bool:
    """Returns whether vectors are pgvector's, and creates the extension if so."""
    wanted = op.get_context().config.attributes.get("pgvector", "auto") != "off"
    available = sa.text("SELECT installed_version IS NULL FROM pg_available_extensions WHERE name = 'vector'")
    is_to_be_created = op.get_bind().scalar(available)
    if not wanted or is_to_be_created is None:
        return False
    if is_to_be_created:  # a Citus cluster lets its owner alone create one, even one that exists
        op.execute("CREATE EXTENSION vector")
    return True


def has_iterative_scan() -> bool:
    """Returns whether this version of pgvector can search on until it has enough."""
    op.execute("SELECT '[1]'::vector")  # loads the library, which brings its settings
    return bool(op.get_bind().scalar(sa.text("SELECT count(*) FROM pg_settings WHERE name = 'hnsw.iterative_scan'")))


def run(file: str, vectors: dict[str, str]) -> None:
    """Runs a file and the comments in it; a block makes one statement of it, for the driver takes no more at a time."""
    script = (FOLDER / f"{file}.sql").read_text()
    for name, text in vectors.items():
        script = script.replace(name, text)
    op.get_bind().exec_driver_sql(f"DO $baseline$ BEGIN\n{script}END $baseline$")
    for comment in comments(script):
        op.get_bind().exec_driver_sql(comment)


def comments(script: str) -> Iterator[str]:
    """Yields the statements that comment on the tables that the script creates and on their columns."""
    definitions = r"^CREATE (?:UNLOGGED )?TABLE (\w+) \((.*?)^\);"
    for table, lines in re.findall(definitions, script, re.MULTILINE | re.DOTALL):
        subject = f"TABLE {table}"
        for line in lines.splitlines():
            if column := re.match(r" {4}([a-z]\w*)", line):
                subject = f"COLUMN {table}.{column[1]}"
            if comment := line.partition("-- ")[2].replace("'", "''"):
                yield f"COMMENT ON {subject} IS '{comment}'"
