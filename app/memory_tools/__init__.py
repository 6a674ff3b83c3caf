"""Memory as tools that a model calls itself: one definition for HTTP and the Model Context Protocol."""
