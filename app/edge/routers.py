"""Routers of the API."""

from typing import Any

from fastapi import APIRouter

from app.edge.intake.route import BodyRoute
from app.edge.problems import DOCUMENTED


def api_router(
    tag: str,
    prefix: str = "",
    route_class: type[BodyRoute] = BodyRoute,
    responses: dict[int | str, dict[str, Any]] = DOCUMENTED,
) -> APIRouter:
    """Returns an empty router with that tag; a generated client's methods have the names of the routes.

    Args:
        tag: topic of the routes in the OpenAPI document.
        prefix: beginning of the routes' paths.
        route_class: class of the routes.
        responses: responses that the OpenAPI document tells of each route beside the route's own.
    """
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        route_class=route_class,
        responses=responses,
        generate_unique_id_function=lambda route: route.name,
    )
