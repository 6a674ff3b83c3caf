"""Jobs that keep a bank in bounds: pruning, the index of large profiles, and the move to another embedding model."""
