"""Checks the rights that a login needs to migrate a database, before anything is changed."""

from sqlalchemy import Connection, text

from retrieval.patterns import read

_SQL = read("app.postgres", "statements.toml")["rights"]

ROLES = ("casebank_service", "casebank_worker", "casebank_eraser")


def missing_rights(connection: Connection, *, pgvector: str = "auto") -> list[str]:
    """Returns the missing rights, as statements for a superuser, or as the login to use."""
    login = connection.execute(text(_SQL["login"])).one()
    if login.rolsuper:
        return []
    if login.migrated:
        return [f"log in as {owner}, who owns the tables" for owner in connection.scalars(text(_SQL["owners"]))]
    lacking = [] if login.creates else [f'GRANT CREATE ON SCHEMA public TO "{login.name}"']
    known = {row.rolname: row.admin for row in connection.execute(text(_SQL["roles"]), {"names": list(ROLES)})}
    if len(known) < len(ROLES) and not login.rolcreaterole:
        lacking.append(f'ALTER ROLE "{login.name}" CREATEROLE')
    foreign = [role for role, admin in known.items() if not admin]
    if foreign and (login.roles_have_admins or not login.rolcreaterole):
        lacking.append(f'GRANT {", ".join(sorted(foreign))} TO "{login.name}" WITH ADMIN OPTION')
    vector = None if pgvector == "off" else connection.execute(text(_SQL["vector"])).one_or_none()
    if vector is not None and not (vector.trusted and login.extends):
        lacking.append(f"CREATE EXTENSION vector, in the database {login.database} (or set CASEBANK_PGVECTOR=off)")
    return lacking
