"""The one MetaData of all tables, and the columns and checks that many of them share."""

from typing import get_args

from sqlalchemy import CheckConstraint, Column, DateTime, MetaData, Text, func

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
        "ck": "%(table_name)s_%(constraint_name)s_check",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
    },
)


def user() -> Column[str]:
    """Returns the column that every key begins with: whose the row is."""
    return Column("user_sub", Text, nullable=False)


def created() -> Column[object]:
    """Returns the column that says since when there is the row."""
    return Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now())


def one_of(column: str, kind: object) -> CheckConstraint:
    """Returns the check that the column has one of the values of an enumeration of ``retrieval.kinds``."""
    return CheckConstraint(f"{column} IN ({', '.join(repr(value) for value in get_args(kind))})", name=column)


def unit_interval(column: str) -> CheckConstraint:
    """Returns the check that the column lies within 0 and 1."""
    return CheckConstraint(f"{column} >= 0 AND {column} <= 1", name=column)
