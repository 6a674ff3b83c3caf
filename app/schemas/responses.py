"""Builds responses from objects and rows whose names are those of the API."""

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict
from sqlalchemy import RowMapping

Response = TypeVar("Response", bound=BaseModel)


class RowOut(BaseModel):
    """A response made from a row; the alias of a field is its column, where the names differ."""

    model_config = ConfigDict(validate_by_name=True)


def response_of(model: type[Response], source: object, /, **others: Any) -> Response:
    """Builds a response from the attributes of an object that have the names of its fields.

    ``others`` are fields with another name or value than in the object.
    """
    names = [name for name in model.model_fields if name not in others and hasattr(source, name)]
    return model.model_validate({name: getattr(source, name) for name in names} | others, from_attributes=True)


def next_cursor(rows: Sequence[RowMapping], limit: int) -> str | None:
    """Returns the cursor of the next page; None after the last page."""
    return str(rows[-1]["id"]) if len(rows) == limit else None
