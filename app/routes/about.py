"""The root path: name, version and links of the service."""

from importlib.metadata import version

from fastapi import APIRouter
from pydantic import BaseModel

from app.edge.intake.route import BodyRoute

router = APIRouter(tags=["service"], route_class=BodyRoute)


class About(BaseModel):
    """The service, and where its documentation is."""

    name: str = "casebank"
    version: str
    what: str = "memory for agents that learns which memories help: retrieve before the agent acts, retain after"
    documentation: str = "/docs"
    description: str = "/openapi.json"
    ready: str = "/readyz"


@router.get("/")
async def about() -> About:
    """Returns the name and version of the service, with links."""
    return About(version=version("casebank"))
