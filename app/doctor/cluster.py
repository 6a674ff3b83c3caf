"""Checks of a Citus cluster: its nodes, the tables distributed over them, and the worker's rights on each node."""

from sqlalchemy import text

from app.doctor.finding import Finding
from app.doctor.installation import Installation
from app.postgres.citus import BY_USER, DISTRIBUTED, EVERYWHERE

_MIGRATE = "casebank migrate --citus, with the owner's login"

_EXTENSION = text("SELECT count(*) FROM pg_extension WHERE extname = 'citus'")
_NODES = text("SELECT nodename || ':' || nodeport AS name, isactive FROM pg_dist_node ORDER BY 1")
_TELLS_NODES = text("SELECT current_setting('citus.propagate_set_commands') = 'local'")
_UNTOLD = text(
    "SELECT count(*) FROM run_command_on_placements('cases'::regclass,"
    " $$SELECT has_column_privilege('casebank_worker', '%s', 'lease_token', 'UPDATE')$$) WHERE result <> 't'"
)
"""Counts the shards of cases on which the worker lacks its rights: those that were moved since."""


async def cluster(installation: Installation) -> Finding:
    """Judges whether the tables are distributed as ``citus=true`` says, and the nodes are active with all rights."""
    async with installation.owner.connect() as connection:
        there: set[str] = set()
        if await connection.scalar(_EXTENSION):
            there = set((await connection.scalars(text(DISTRIBUTED))).all()) & {*BY_USER, *EVERYWHERE}
        if not there:
            if not installation.database.citus:
                return Finding("cluster", ok=None, detail="none: all tables are on one Postgres")
            advice = f"{_MIGRATE}; or leave citus=true out of DATABASE_URL"
            return Finding("cluster", ok=False, detail="citus=true, and no table is distributed", advice=advice)
        nodes = (await connection.execute(_NODES)).all()
        tells_nodes, untold = await connection.scalar(_TELLS_NODES), await connection.scalar(_UNTOLD)
    missing = sorted({*BY_USER, *EVERYWHERE} - there)
    away = [node.name for node in nodes if not node.isactive]
    faults = {
        "DATABASE_URL lacks citus=true": not installation.database.citus and "add citus=true to DATABASE_URL",
        f"not distributed: {', '.join(missing)}": missing and _MIGRATE,
        "nodes are not told who the user is": not tells_nodes and _MIGRATE,
        f"the worker lacks its rights on {untold} shards": untold and _MIGRATE,
        f"not active: {', '.join(away)}": away and "citus_activate_node(), once the node answers",
    }
    found = {fault: advice for fault, advice in faults.items() if advice}
    detail = f"{len(there)} tables over {len(nodes)} nodes" + "".join(f"; {fault}" for fault in found)
    return Finding("cluster", not found, detail, "; ".join(dict.fromkeys(map(str, found.values()))))
