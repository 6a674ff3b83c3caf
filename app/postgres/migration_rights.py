"""Checks the rights that a login needs to migrate a database, before anything is changed."""

from sqlalchemy import Connection, text

ROLES = ("casebank_service", "casebank_worker", "casebank_eraser")

_LOGIN = text(
    "SELECT current_user AS name, current_database() AS database, rolsuper, rolcreaterole,"
    " has_schema_privilege('public', 'CREATE') AS creates,"
    " has_database_privilege(current_database(), 'CREATE') AS extends,"
    " to_regclass('public.alembic_version') IS NOT NULL AS migrated,"
    " current_setting('server_version_num')::integer >= 160000 AS roles_have_admins"
    " FROM pg_roles WHERE rolname = current_user"
)
_ROLES = text(
    "SELECT rolname, pg_has_role(current_user, oid, 'MEMBER WITH ADMIN OPTION') AS admin"
    " FROM pg_roles WHERE rolname = ANY(:names)"
)
_OWNERS = text(
    "SELECT DISTINCT pg_get_userbyid(relowner) FROM pg_class"
    " WHERE relnamespace = 'public'::regnamespace AND relname IN ('alembic_version', 'cases')"
    " AND NOT pg_has_role(current_user, relowner, 'USAGE')"
)
_VECTOR = text(
    "SELECT bool_or(trusted) AS trusted FROM pg_available_extension_versions AS known WHERE name = 'vector'"
    " AND NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'vector') HAVING count(*) > 0"
)


def missing_rights(connection: Connection, *, pgvector: str = "auto") -> list[str]:
    """Returns the missing rights, as statements for a superuser, or as the login to use."""
    login = connection.execute(_LOGIN).one()
    if login.rolsuper:
        return []
    if login.migrated:
        return [f"log in as {owner}, who owns the tables" for owner in connection.scalars(_OWNERS)]
    lacking = [] if login.creates else [f'GRANT CREATE ON SCHEMA public TO "{login.name}"']
    known = {row.rolname: row.admin for row in connection.execute(_ROLES, {"names": list(ROLES)})}
    if len(known) < len(ROLES) and not login.rolcreaterole:
        lacking.append(f'ALTER ROLE "{login.name}" CREATEROLE')
    foreign = [role for role, admin in known.items() if not admin]
    if foreign and (login.roles_have_admins or not login.rolcreaterole):
        lacking.append(f'GRANT {", ".join(sorted(foreign))} TO "{login.name}" WITH ADMIN OPTION')
    vector = None if pgvector == "off" else connection.execute(_VECTOR).one_or_none()
    if vector is not None and not (vector.trusted and login.extends):
        lacking.append(f"CREATE EXTENSION vector, in the database {login.database} (or set CASEBANK_PGVECTOR=off)")
    return lacking
