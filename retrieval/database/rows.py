"""The types of statements and rows whose columns are chosen by name, for all who build or read such a statement."""

from typing import Any

from sqlalchemy import Row, Select

Rows = Select[*tuple[Any, ...]]
"""A statement for rows. SQLAlchemy types a statement by the tuple of its columns' types, up to ten of them; of columns
that are looked up by name, or are more than that, the types are not known, and Any is all that its annotation takes.
"""

AnyRow = Row[*tuple[Any, ...]]
"""A row of such a statement; for the same reason."""
