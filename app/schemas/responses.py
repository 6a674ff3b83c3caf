"""Builds responses from objects and rows whose names are those of the API."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel
from sqlalchemy import RowMapping

Response = TypeVar("Response", bound=BaseModel)


def response_of(model: type[Response], source: object, /, **others: Any) -> Response:
    """Builds a response from the attributes of an object that have the names of its fields.

    ``others`` are fields with another name or value than in the object.
    """
    names = [name for name in model.model_fields if name not in others and hasattr(source, name)]
    return model.model_validate({name: getattr(source, name) for name in names} | others, from_attributes=True)


def without(row: Mapping[Any, Any], names: Iterable[str]) -> dict[str, Any]:
    """Returns the columns of a row except those named."""
    return {name: value for name, value in row.items() if name not in names}


def next_cursor(rows: Sequence[RowMapping], limit: int) -> str | None:
    """Returns the cursor of the next page; None after the last page."""
    return str(rows[-1]["id"]) if len(rows) == limit else None
