"""The command line's shared parts: options, lazy imports, errors in one line."""
