"""Everything between a socket and a route: server, limits, bodies, dependencies, problem documents, OpenAPI."""
