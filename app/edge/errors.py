"""Errors of the service itself that a route answers; `app.edge.problems` maps each to a problem document."""

from retrieval.errors import CasebankError


class McpNotInstalled(CasebankError):
    """The package that speaks the Model Context Protocol is not installed."""
