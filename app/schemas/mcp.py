"""The OAuth metadata of `/mcp`, for clients without a valid token."""

from pydantic import BaseModel, Field


class ResourceMetadataOut(BaseModel):
    """The metadata of a protected resource (RFC 9728)."""

    resource: str = Field(description="resource that the token must be issued for")
    resource_name: str = "casebank"
    authorization_servers: list[str] | None = Field(
        default=None, description="issuers of tokens; absent if this installation issues its own tokens"
    )
    bearer_methods_supported: list[str] = ["header"]
