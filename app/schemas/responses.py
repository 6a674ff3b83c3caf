"""Builds responses from objects and rows whose names are those of the API."""

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict
from sqlalchemy import RowMapping

Response = TypeVar("Response", bound=BaseModel)


class RowOut(BaseModel):
    """A response made from a row or an object; where names differ, a field has its column or attribute as alias."""

    model_config = ConfigDict(validate_by_name=True)


def response_of(model: type[Response], source: object, /, **others: Any) -> Response:
    """Builds a response from the attributes of an object that have the names of its fields, or their aliases.

    ``others`` are fields with another value than in the object.
    """
    names = {name: str(field.validation_alias or name) for name, field in model.model_fields.items()}
    given = {
        name: getattr(source, attribute)
        for name, attribute in names.items()
        if name not in others and hasattr(source, attribute)
    }
    return model.model_validate(given | others, from_attributes=True)


def next_cursor(rows: Sequence[RowMapping], limit: int) -> str | None:
    """Returns the cursor of the next page; None after the last page."""
    return str(rows[-1]["id"]) if len(rows) == limit else None
