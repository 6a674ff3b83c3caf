"""Memory as tools for a model: their definitions, and a route for each call."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Query
from pydantic import BaseModel

from app.edge.dependencies import Caller, Parts
from app.edge.routers import api_router
from app.memory_tools.asking import Asking
from app.memory_tools.definitions import TOOLS, Definition, definitions, run_tool
from app.schemas.memory_tools import Format, ToolDefinitionsOut, ToolTextOut
from writer.privacy.names import nameable
from writer.run import AgentKey

router = api_router("memory as tools", "/v1/memory-tools")

Agent = Annotated[AgentKey, Query(description="agent whose memory is used; the backend chooses it, never the model")]
Style = Annotated[
    Format, Query(alias="format", description="format of the definitions: OpenAI function calling or MCP")
]


@router.get("")
async def list_memory_tools(_caller: Caller, style: Style = "openai") -> ToolDefinitionsOut:
    """Returns the definitions of the memory tools, to pass to a model with its other tools."""
    return ToolDefinitionsOut(tools=definitions(style))


def _route_of(tool: Definition) -> Callable[..., Awaitable[ToolTextOut]]:
    arguments: type[BaseModel] = tool.arguments

    async def call(given: arguments, agent: Agent, parts: Parts, caller: Caller) -> ToolTextOut:  # type: ignore[valid-type]
        return ToolTextOut(text=await run_tool(tool.name, Asking(parts, caller, nameable(agent)), given))

    call.__doc__ = (
        f"{tool.description}\n\nThe body has the arguments from the model; the response is text for the model."
    )
    return call


for _tool in TOOLS.values():
    router.add_api_route(
        f"/{_tool.name}",
        _route_of(_tool),
        methods=["POST"],
        name=f"call_{_tool.name}",
    )
