"""Memory as tools that a model calls of its own accord: defined once, for HTTP and the Model Context Protocol."""
