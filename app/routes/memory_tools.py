"""Memory as tools: their definitions, for a model's library, and a route for each, for whoever runs what it calls."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from app.admission.errors import QueueFull
from app.edge.dependencies import Caller, Parts
from app.edge.intake.route import BodyRoute
from app.edge.problems import DOCUMENTED, raises
from app.memory_tools.asking import Asking
from app.memory_tools.definitions import TOOLS, Definition, definitions
from app.memory_tools.run import run_tool
from app.schemas.memory_tools import Format, ToolDefinitionsOut, ToolTextOut
from retrieval.errors import NotFound
from writer.errors import SecretInName, UnknownReference
from writer.privacy.names import nameable
from writer.privacy.seal import PayloadTooLarge
from writer.run import AgentKey

router = APIRouter(prefix="/v1/memory-tools", tags=["memory as tools"], responses=DOCUMENTED, route_class=BodyRoute)

Agent = Annotated[AgentKey, Query(description="whose memory: of the backend's choice, and never of a model's")]
Style = Annotated[Format, Query(alias="format", description="of OpenAI's function calling, or of MCP")]


@router.get("")
async def list_memory_tools(_caller: Caller, style: Style = "openai") -> ToolDefinitionsOut:
    """Returns the definitions of the memory tools, to be handed to a model among its other tools."""
    return ToolDefinitionsOut(tools=definitions(style))


_OWN_ERRORS = {"remember": (UnknownReference, PayloadTooLarge, QueueFull)}
"""What a tool raises besides what all of them may."""


def _route_of(tool: Definition) -> Callable[..., Awaitable[ToolTextOut]]:
    arguments: type[BaseModel] = tool.arguments

    async def call(given: arguments, agent: Agent, parts: Parts, caller: Caller) -> ToolTextOut:  # type: ignore[valid-type]
        return ToolTextOut(text=await run_tool(tool.name, Asking(parts, caller, nameable(agent)), given))

    call.__doc__ = f"{tool.description}\n\nThe body is what the model gave as arguments; the answer is text for it."
    return call


for _tool in TOOLS.values():
    router.add_api_route(
        f"/{_tool.name}",
        _route_of(_tool),
        methods=["POST"],
        name=f"call_{_tool.name}",
        responses=raises(NotFound, SecretInName, *_OWN_ERRORS.get(_tool.name, ())),
    )
