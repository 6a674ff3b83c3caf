"""What is told of `/mcp` to whoever was refused there."""

from pydantic import BaseModel, Field


class ResourceMetadataOut(BaseModel):
    """The metadata of a protected resource (RFC 9728)."""

    resource: str = Field(description="what a token has to be for")
    resource_name: str = "casebank"
    authorization_servers: list[str] | None = Field(
        default=None, description="who issues tokens; left out where tokens are this installation's own"
    )
    bearer_methods_supported: list[str] = ["header"]
